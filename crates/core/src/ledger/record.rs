//! What is known of a call: legs and attempts.

use std::{borrow::Cow, sync::Arc, time::Duration};

use smallvec::SmallVec;
use tokio::time::Instant;

use super::leg::{Ended, Leg, Scope};
use crate::{Cause, Class, NotReplayable, Reading, gate::Gate};

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
    pub(super) elapsed: Duration,
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
    pub(super) finished: Option<Instant>,
    pub(super) first_content: Option<Instant>,
    pub(super) deadline: Option<Instant>,
    pub(super) scope: Scope,
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
            scope: Scope::default(),
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
        std::iter::successors(leg, |leg| self.leg(*leg)?.parent)
    }

    /// The same, to change.
    pub(super) fn lineage_mut(&mut self, leg: u32, mut change: impl FnMut(&mut Leg)) {
        let mut inner = Some(leg);
        while let Some(slot) = inner.and_then(|leg| self.leg_mut(leg)) {
            change(slot);
            inner = slot.parent;
        }
    }

    /// What holds for a leg: its own scope, those of the legs around it, and that of the call.
    pub(super) fn scopes(&self, leg: u32) -> impl Iterator<Item = &Scope> {
        let legs = self.lineage(Some(leg)).map(|leg| &leg.scope);
        legs.chain(std::iter::once(&self.scope))
    }

    /// The gates of the call, of a leg and of the legs around it, each once, to be told of an attempt
    /// on this leg; and whether it is the first that each is told of.
    pub(super) fn gates_to_tell(&mut self, leg: u32) -> SmallVec<[(Arc<dyn Gate>, bool); 2]> {
        let mut gates = SmallVec::<[(Arc<dyn Gate>, bool); 2]>::new();
        let mut tell = |scope: &mut Scope| {
            for entered in &mut scope.gates {
                let first = !std::mem::replace(&mut entered.told, true);
                if !gates.iter().any(|(g, _)| Arc::ptr_eq(g, &entered.gate)) {
                    gates.push((Arc::clone(&entered.gate), first));
                }
            }
        };
        self.lineage_mut(leg, |slot| tell(&mut slot.scope));
        tell(&mut self.scope);
        gates
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
        attempt.elapsed = now.saturating_duration_since(attempt.start);
        attempt.story().reason = reading.reason_owned();
    }

    pub(super) fn last_attempt_mut(&mut self, leg: u32) -> Option<&mut AttemptRecord> {
        // Not simply the last: legs may race.
        self.attempts.iter_mut().rev().find(|a| a.leg == leg)
    }

    /// Enters an outcome.
    pub(super) fn enter(&mut self, leg: u32, ended: Ended<'_>) {
        self.seen = ended.end;
        let class = ended.reading.class();
        let Some(slot) = self.leg_mut(leg) else {
            return;
        };
        slot.counts = slot.counts.after(ended.reading).0;
        slot.advice = None;
        // A refusal after a real outcome is not what the leg came to.
        if class != Class::Refused || slot.last_class.is_none() {
            slot.last_class = Some(class);
        }
        if class != Class::Cancelled {
            // A mark is of one attempt: the next may be dropped for another reason.
            slot.abandoned = None;
        }
        if slot.outer {
            return;
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
            elapsed: ended.end.saturating_duration_since(ended.start),
            class,
            status: ended.reading.status(),
            story: ended.reading.reason_owned().map(|reason| {
                Box::new(Story {
                    reason: Some(reason),
                    ..Story::default()
                })
            }),
        });
    }
}
