//! What a rule looks back on: so much time, or so many calls.
//!
//! Time is cut into epochs, a tenth of the rule's time each, counted from the entry into closed; an
//! epoch is over for a rule ten epochs later. Everything is whole numbers: a long idle gap, or a
//! clock that stands still, is only a difference of two of them.

use std::collections::VecDeque;

/// A rule's time is cut into so many.
pub(crate) const EPOCHS: u64 = 10;

/// Calls, and those among them that the rule counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) calls: u64,
    pub(crate) bad: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Window {
    Time(Buckets),
    Last(Tail),
}

impl Window {
    pub(super) fn new(last: Option<u32>) -> Self {
        match last {
            None => Self::Time(Buckets::default()),
            Some(last) => Self::Last(Tail::new(last)),
        }
    }

    pub(super) fn add(&mut self, epoch: u64, bad: bool, calls: u64) {
        match self {
            Self::Time(buckets) => buckets.add(epoch, bad, calls),
            Self::Last(tail) => tail.add(epoch, bad, calls),
        }
    }

    /// What is in it at `epoch`.
    pub(super) fn counts(&self, epoch: u64) -> Counts {
        match self {
            Self::Time(buckets) => buckets.counts(epoch),
            Self::Last(tail) => tail.counts(epoch),
        }
    }
}

/// The last ten epochs, a bucket each.
#[derive(Clone, Debug, Default)]
pub(super) struct Buckets {
    newest: u64,
    slots: [Bucket; EPOCHS as usize],
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    epoch: u64,
    counts: Counts,
}

impl Buckets {
    fn add(&mut self, epoch: u64, bad: bool, calls: u64) {
        self.newest = self.newest.max(epoch);
        let place = usize::try_from(epoch % EPOCHS).unwrap_or(0);
        let Some(bucket) = self.slots.get_mut(place) else {
            return;
        };
        if epoch > bucket.epoch {
            *bucket = Bucket {
                epoch,
                counts: Counts::default(),
            };
        } else if epoch < bucket.epoch {
            // Of an epoch that is over.
            return;
        }
        let counts = &mut bucket.counts;
        counts.calls = counts.calls.saturating_add(calls);
        if bad {
            counts.bad = counts.bad.saturating_add(calls);
        }
    }

    fn counts(&self, epoch: u64) -> Counts {
        // A clock that goes back does not hide what was counted ahead of it.
        let now = epoch.max(self.newest);
        let mut sum = Counts::default();
        for bucket in &self.slots {
            if bucket.epoch.saturating_add(EPOCHS) > now {
                sum.calls = sum.calls.saturating_add(bucket.counts.calls);
                sum.bad = sum.bad.saturating_add(bucket.counts.bad);
            }
        }
        sum
    }
}

/// The last so many calls, equal ones in a row as one run.
#[derive(Clone, Debug)]
pub(super) struct Tail {
    last: u64,
    held: Counts,
    runs: VecDeque<Run>,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    epoch: u64,
    bad: bool,
    calls: u64,
}

impl Tail {
    fn new(last: u32) -> Self {
        Self {
            last: u64::from(last),
            held: Counts::default(),
            runs: VecDeque::new(),
        }
    }

    fn add(&mut self, epoch: u64, bad: bool, calls: u64) {
        let calls = calls.min(self.last);
        match self.runs.back_mut() {
            Some(run) if run.epoch == epoch && run.bad == bad => run.calls += calls,
            _ => self.runs.push_back(Run { epoch, bad, calls }),
        }
        self.held.calls += calls;
        if bad {
            self.held.bad += calls;
        }
        while self.held.calls > self.last {
            let over = self.held.calls - self.last;
            let Some(oldest) = self.runs.front_mut() else {
                break;
            };
            let gone = over.min(oldest.calls);
            oldest.calls -= gone;
            self.held.calls -= gone;
            if oldest.bad {
                self.held.bad -= gone;
            }
            if oldest.calls == 0 {
                self.runs.pop_front();
            }
        }
    }

    fn counts(&self, epoch: u64) -> Counts {
        let mut counts = self.held;
        for run in &self.runs {
            if run.epoch.saturating_add(EPOCHS) > epoch {
                break;
            }
            counts.calls -= run.calls;
            if run.bad {
                counts.bad -= run.calls;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(calls: u64, bad: u64) -> Counts {
        Counts { calls, bad }
    }

    #[test]
    fn a_bucket_is_over_ten_epochs_later_and_not_one_earlier() {
        for last in [None, Some(100)] {
            let mut window = Window::new(last);
            window.add(3, true, 2);
            window.add(12, false, 1);
            assert_eq!(window.counts(12), counts(3, 2), "{last:?}");
            assert_eq!(window.counts(13), counts(1, 0), "{last:?}");
            assert_eq!(window.counts(22), counts(0, 0), "{last:?}");
        }
    }

    // Row 10: an idle gap longer than any small counter.
    #[test]
    fn a_gap_of_any_length_empties_it() {
        for last in [None, Some(5)] {
            let mut window = Window::new(last);
            window.add(1, true, 5);
            let far = u64::from(u32::MAX) * 7 + 1;
            window.add(far, false, 1);
            assert_eq!(window.counts(far), counts(1, 0));
            assert_eq!(window.counts(u64::MAX), counts(0, 0));
        }
    }

    // Row 12: the call that opens a bucket is in it.
    #[test]
    fn what_opens_a_bucket_is_counted() {
        let mut window = Window::new(None);
        for epoch in 1..=25 {
            window.add(epoch, true, 1);
            assert_eq!(window.counts(epoch), counts(epoch.min(10), epoch.min(10)));
        }
    }

    // Row 11: a window over calls slides.
    #[test]
    fn the_last_calls_slide() {
        let mut window = Window::new(Some(10));
        window.add(1, false, 100_000);
        for bad in 1..=10 {
            window.add(1, true, 1);
            assert_eq!(window.counts(1), counts(10, bad));
        }
        window.add(1, false, 3);
        assert_eq!(window.counts(1), counts(10, 7));
    }
}
