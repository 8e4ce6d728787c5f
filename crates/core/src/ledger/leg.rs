//! One leg: all attempts of one call on one target.

use std::time::Duration;

use tokio::time::Instant;

use super::record::Abandoned;
use crate::{Cause, Class, Limits, Reading, Verdict};

/// All that was sent on a leg and on the legs below it, and the limits over that.
#[derive(Clone, Copy, Default)]
pub(crate) struct Total {
    pub(crate) limits: Limits,
    pub(crate) sends: u32,
    pub(crate) waited: Duration,
}

impl Total {
    pub(crate) fn is_spent(&self) -> bool {
        let most = self.limits.max_attempts;
        most.is_some_and(|most| self.sends >= most)
    }
}

/// How the outcomes on a leg ran so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) sends: u32,
    throttled: u32,
    others: u32,
    pub(super) last_wait: Option<Duration>,
}

impl Counts {
    /// The counts once this outcome is in, and the streak of its class.
    pub(super) fn after(mut self, reading: &Reading) -> (Self, u32) {
        if reading.class() != Class::Refused {
            self.sends = self.sends.saturating_add(1);
        }
        if reading.class() == Class::Success {
            return (self, 0);
        }
        if asks_for_wait(reading) {
            // After a hinted wait the schedule starts again.
            return (
                Self {
                    sends: self.sends,
                    ..Self::default()
                },
                0,
            );
        }
        let streak = match reading.class() {
            Class::Throttled => &mut self.throttled,
            _ => &mut self.others,
        };
        *streak = streak.saturating_add(1);
        let streak = *streak;
        (self, streak)
    }
}

/// Whether the server named a wait of more than nothing.
pub(crate) fn asks_for_wait(reading: &Reading) -> bool {
    reading
        .hint()
        .and_then(|hint| hint.after())
        .is_some_and(|wait| !wait.is_zero())
}

/// The slot of one leg.
pub(super) struct Leg {
    /// It was opened on a target: [`Plans`](super::plan::Plans) has its plan.
    pub(super) named: bool,
    /// The driver has left: nobody would leave a gate that is entered now.
    pub(super) over: bool,
    /// What was sent here or on the legs below may have been processed.
    pub(super) in_doubt: bool,
    /// A failover below opened legs of its own: what the driver above sends is no attempt.
    pub(super) outer: bool,
    pub(super) last_class: Option<Class>,
    /// The leg whose driver is above the failover that opened this one.
    pub(super) parent: Option<u32>,
    pub(super) opened: Instant,
    pub(super) deadline: Option<Instant>,
    pub(super) limits: Limits,
    pub(super) counts: Counts,
    pub(super) total: Total,
    /// Boxed: a clean call has none, and what is moved is copied.
    trouble: Option<Box<Trouble>>,
}

/// What there is to tell of a leg that did not go clean.
#[derive(Clone, Copy, Default)]
pub(super) struct Trouble {
    pub(super) waited: Duration,
    pub(super) unsent: u32,
    pub(super) advice: Option<Verdict>,
    pub(super) abandoned: Option<Abandoned>,
    pub(super) cause: Option<Cause>,
}

impl Leg {
    pub(super) fn new(named: bool, parent: Option<u32>, opened: Instant) -> Self {
        Self {
            named,
            over: false,
            in_doubt: false,
            outer: false,
            last_class: None,
            parent,
            opened,
            deadline: None,
            limits: Limits::default(),
            counts: Counts::default(),
            total: Total::default(),
            trouble: None,
        }
    }

    /// What went wrong so far.
    pub(super) fn trouble(&self) -> Trouble {
        self.trouble.as_deref().copied().unwrap_or_default()
    }

    /// The same, to add to.
    pub(super) fn in_trouble(&mut self) -> &mut Trouble {
        self.trouble.get_or_insert_default()
    }

    /// An attempt ended: the advice was about it, and so was a mark, unless it was dropped with it.
    pub(super) fn end_attempt(&mut self, class: Class) {
        if let Some(trouble) = &mut self.trouble {
            trouble.advice = None;
            if class != Class::Cancelled {
                trouble.abandoned = None;
            }
        }
    }
}

/// An attempt that came to an end.
#[derive(Clone, Copy)]
pub(crate) struct Ended<'r> {
    pub(crate) reading: &'r Reading,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}
