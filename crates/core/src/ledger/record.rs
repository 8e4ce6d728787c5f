//! What is known of a call: legs and attempts.

use std::{borrow::Cow, time::Duration};

use smallvec::SmallVec;
use tokio::time::Instant;

use super::{
    gates::Entered,
    leg::{Ended, Leg},
};
use crate::{Cause, Class, Limits, NotReplayable, Reading};

/// Why an attempt was dropped by a layer, said before it is dropped. Without a mark the caller left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Abandoned {
    /// The deadline of the call passed.
    Deadline,
    /// Another attempt of the same call was faster.
    HedgeLost,
}

/// One attempt, as recorded.
pub(super) struct AttemptRecord {
    pub(super) leg: u32,
    pub(super) start: Instant,
    pub(super) end: Instant,
    pub(super) class: Class,
    pub(super) status: Option<u16>,
    /// Boxed, and absent from a clean attempt: the record of a clean call is written in one piece,
    /// and its size is most of its price.
    pub(super) story: Option<Box<Story>>,
}

/// What there is to tell of an attempt that was not clean.
#[derive(Default)]
pub(super) struct Story {
    pub(super) reason: Option<Cow<'static, str>>,
    pub(super) wait: Option<Duration>,
    pub(super) cause: Option<Cause>,
    pub(super) not_replayable: Option<NotReplayable>,
}

impl AttemptRecord {
    pub(super) fn story(&mut self) -> &mut Story {
        self.story.get_or_insert_default()
    }
}

pub(super) struct Record {
    pub(super) adopted: bool,
    pub(super) opened: Instant,
    pub(super) seen: Instant,
    /// Set where it ended without an outcome; else that was the last that was seen.
    pub(super) finished: Option<Instant>,
    pub(super) first_content: Option<Instant>,
    pub(super) deadline: Option<Instant>,
    pub(super) limits: Limits,
    pub(super) gates: SmallVec<[Entered; 1]>,
    pub(super) sends: u32,
    pub(super) waited: Duration,
    pub(super) abandoned: Option<Abandoned>,
    pub(super) served: Option<u32>,
    pub(super) legs: SmallVec<[Leg; 1]>,
    pub(super) attempts: SmallVec<[AttemptRecord; 4]>,
}

impl Record {
    pub(super) fn new(now: Instant, adopted: bool) -> Self {
        Self {
            adopted,
            opened: now,
            seen: now,
            finished: None,
            first_content: None,
            deadline: None,
            limits: Limits::default(),
            gates: SmallVec::new(),
            sends: 0,
            waited: Duration::ZERO,
            abandoned: None,
            served: None,
            legs: SmallVec::new(),
            attempts: SmallVec::new(),
        }
    }

    pub(super) fn leg(&self, leg: u32) -> Option<&Leg> {
        self.legs.get(usize::try_from(leg).ok()?)
    }

    pub(super) fn leg_mut(&mut self, leg: u32) -> Option<&mut Leg> {
        self.legs.get_mut(usize::try_from(leg).ok()?)
    }

    pub(super) fn add_leg(&mut self, leg: Leg) -> u32 {
        let number = self.legs.len();
        self.legs.push(leg);
        // A call of more legs than that runs out of memory first.
        u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// A leg and the legs around it, from the inside out.
    pub(super) fn lineage(&self, leg: Option<u32>) -> impl Iterator<Item = &Leg> + Clone {
        self.numbers(leg).filter_map(|leg| self.leg(leg))
    }

    /// The same, by their numbers.
    pub(super) fn numbers(&self, leg: Option<u32>) -> impl Iterator<Item = u32> + Clone {
        numbers(leg, &self.legs)
    }

    /// The same, to change.
    pub(super) fn lineage_mut(&mut self, leg: u32, mut change: impl FnMut(&mut Leg)) {
        let mut inner = Some(leg);
        while let Some(slot) = inner.and_then(|leg| self.leg_mut(leg)) {
            change(slot);
            inner = slot.parent;
        }
    }

    /// The earliest deadline of a leg, the legs around it and the call.
    pub(super) fn deadline(&self, leg: Option<u32>) -> Option<Instant> {
        let legs = self.lineage(leg).filter_map(|leg| leg.deadline);
        legs.chain(self.deadline).min()
    }

    /// The answer of a leg's last attempt ended so, after its head was a success.
    pub(super) fn end_body(&mut self, leg: u32, reading: &Reading, now: Instant) {
        let attempt = self.last_attempt_mut(leg);
        let Some(attempt) = attempt.filter(|a| a.class == Class::Success) else {
            return;
        };
        attempt.class = reading.class();
        attempt.end = now;
        attempt.story().reason = reading.reason_owned();
    }

    pub(super) fn last_attempt_mut(&mut self, leg: u32) -> Option<&mut AttemptRecord> {
        // Not simply the last: legs may race.
        self.attempts.iter_mut().rev().find(|a| a.leg == leg)
    }

    /// Enters an outcome; whether it was that of an attempt, and not of a failover below.
    pub(super) fn enter(&mut self, leg: u32, ended: Ended<'_>) -> bool {
        let class = ended.reading.class();
        let Some(slot) = self.leg_mut(leg) else {
            return false;
        };
        slot.counts = slot.counts.after(ended.reading).0;
        slot.end_attempt(class);
        // A refusal after a real outcome is not what the leg came to.
        if class != Class::Refused || slot.last_class.is_none() {
            slot.last_class = Some(class);
        }
        if slot.outer {
            return false;
        }
        if class != Class::Refused {
            self.sends = self.sends.saturating_add(1);
            let in_doubt = !ended.reading.is_unprocessed();
            self.lineage_mut(leg, |slot| {
                slot.total.sends = slot.total.sends.saturating_add(1);
                slot.in_doubt |= in_doubt;
            });
        }
        self.attempts.push(AttemptRecord {
            leg,
            start: ended.start,
            end: ended.end,
            class,
            status: ended.reading.status(),
            story: ended.reading.reason_owned().map(|reason| {
                Box::new(Story {
                    reason: Some(reason),
                    ..Story::default()
                })
            }),
        });
        true
    }
}

/// A leg and the legs around it, from the inside out, by their numbers.
pub(super) fn numbers(leg: Option<u32>, legs: &[Leg]) -> impl Iterator<Item = u32> + Clone {
    std::iter::successors(leg, |leg| legs.get(usize::try_from(*leg).ok()?)?.parent)
}
