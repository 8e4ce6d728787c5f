//! What a call's handles share, behind one mutex that is never held across a poll or a callback.

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use smallvec::SmallVec;
use tokio::time::Instant;

use super::leg::{Ended, Leg, LegPlan, Scope, Total, asks_for_wait};
use crate::{
    Cause, Class, History, Limits, NotReplayable, Reading, ResendTerms, Verdict, gate::Gate,
};

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
    pub(super) leg: usize,
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
    fn story(&mut self) -> &mut Story {
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
    pub(super) served: Option<usize>,
    pub(super) legs: SmallVec<[Leg; 1]>,
    pub(super) attempts: SmallVec<[AttemptRecord; 4]>,
}

impl Record {
    fn leg_mut(&mut self, leg: usize) -> Option<&mut Leg> {
        self.legs.get_mut(leg)
    }

    /// What the driver must know to decide, and what an adviser may see.
    fn situation(&self, leg: usize, reading: &Reading, now: Instant) -> Situation {
        let Some(slot) = self.legs.get(leg) else {
            return Situation::default();
        };
        let (counts, streak) = slot.counts.after(reading);
        let plans = self.lineage(Some(leg)).filter_map(|leg| leg.plan.as_ref());
        let outlook = Outlook {
            patience: plans.clone().map(|p| p.patience).min().unwrap_or_default(),
            sends: plans
                .clone()
                .map(|p| p.sends_while_others)
                .min()
                .unwrap_or_default(),
            plans: plans.cloned().collect(),
        };
        Situation {
            history: History {
                sends: counts.sends,
                streak,
                last_wait: counts.last_wait,
                waited: slot.waited,
                elapsed: now.saturating_duration_since(self.opened),
                remaining: self
                    .deadline(Some(leg))
                    .map(|d| d.saturating_duration_since(now)),
                resend_safe: false,
                more_targets: false,
            },
            outlook,
            advice: slot.advice,
            leg: slot.scope.limits,
            around: SmallVec::new(),
            call: self.scope.limits,
            call_sends: self.sends,
            call_waited: self.waited,
            unsent: slot.unsent,
        }
    }

    /// Who is to be told of an attempt on a leg.
    fn told(&self, leg: usize) -> Told {
        let counted = self.legs.get(leg).is_some_and(|slot| !slot.outer);
        Told {
            counted,
            gated: counted && self.scopes(leg).any(|s| !s.gates.is_empty()),
        }
    }

    /// A leg and the legs around it, from the inside out.
    pub(super) fn lineage(&self, leg: Option<usize>) -> impl Iterator<Item = &Leg> + Clone {
        let inner = leg.and_then(|leg| self.legs.get(leg));
        std::iter::successors(inner, |leg| self.legs.get(leg.parent?))
    }

    /// The same, to change.
    fn lineage_mut(&mut self, leg: usize, mut change: impl FnMut(&mut Leg)) {
        let mut inner = Some(leg);
        while let Some(slot) = inner.and_then(|leg| self.legs.get_mut(leg)) {
            change(slot);
            inner = slot.parent;
        }
    }

    /// What holds for a leg: its own scope, those of the legs around it, and that of the call.
    fn scopes(&self, leg: usize) -> impl Iterator<Item = &Scope> {
        let legs = self.lineage(Some(leg)).map(|leg| &leg.scope);
        legs.chain(std::iter::once(&self.scope))
    }

    /// The earliest deadline of a leg, the legs around it and the call.
    pub(super) fn deadline(&self, leg: Option<usize>) -> Option<Instant> {
        let legs = self.lineage(leg).filter_map(|leg| leg.deadline);
        legs.chain(self.deadline).min()
    }

    /// The answer of a leg's last attempt ended so, after its head was a success.
    pub(super) fn end_body(&mut self, leg: usize, reading: &Reading, now: Instant) {
        let attempt = self.last_attempt_mut(leg);
        let Some(attempt) = attempt.filter(|a| a.class == Class::Success) else {
            return;
        };
        attempt.class = reading.class();
        attempt.elapsed = now.saturating_duration_since(attempt.start);
        attempt.story().reason = reading.reason_owned();
    }

    fn last_attempt_mut(&mut self, leg: usize) -> Option<&mut AttemptRecord> {
        // Not simply the last: legs may race.
        self.attempts.iter_mut().rev().find(|a| a.leg == leg)
    }

    pub(super) fn terms(&self, leg: Option<usize>) -> ResendTerms {
        leg.and_then(|leg| self.legs.get(leg)?.plan.as_ref())
            .map(|plan| plan.terms)
            .unwrap_or_default()
    }
}

/// Where else the call could go: from this leg, and from those around it where a failover is a
/// target of another.
#[derive(Clone, Default)]
pub(crate) struct Outlook {
    plans: SmallVec<[Arc<LegPlan>; 1]>,
    pub(crate) patience: Duration,
    pub(crate) sends: u32,
}

impl Outlook {
    /// Asks the targets; never under the lock, since they run a user's function.
    pub(crate) fn more_targets(&self) -> bool {
        let mut onward = self.plans.iter().filter_map(|plan| plan.onward.as_ref());
        onward.any(|(targets, tried)| targets.usable_after(*tried))
    }
}

/// A leg at the end of an attempt.
#[derive(Clone, Default)]
pub(crate) struct Situation {
    pub(crate) history: History,
    pub(crate) outlook: Outlook,
    pub(crate) advice: Option<Verdict>,
    pub(crate) leg: Limits,
    /// Of the targets that this leg is a part of.
    pub(crate) around: SmallVec<[Total; 1]>,
    pub(crate) call: Limits,
    pub(crate) call_sends: u32,
    pub(crate) call_waited: Duration,
    pub(crate) unsent: u32,
}

/// Who is to be told of an attempt.
#[derive(Clone, Copy)]
pub(super) struct Told {
    /// It is one, and not the outcome of a failover below.
    pub(super) counted: bool,
    /// There are gates to tell.
    pub(super) gated: bool,
}

/// The shared part of a ledger.
pub(super) struct Shared(Mutex<Record>);

impl Shared {
    pub(super) fn new(now: Instant, adopted: bool) -> Self {
        Self(Mutex::new(Record {
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
        }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Record> {
        // Nothing that can panic runs under the lock; a poisoned record is still a record.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn open_leg(
        &self,
        plan: Arc<LegPlan>,
        parent: Option<usize>,
        now: Instant,
    ) -> usize {
        let mut record = self.lock();
        if let Some(above) = parent.and_then(|above| record.leg_mut(above)) {
            above.outer = true;
        }
        record.legs.push(Leg::new(Some(plan), parent, now));
        record.legs.len() - 1
    }

    /// Takes up a leg as its driver; opens one where there is none.
    pub(super) fn drive(
        &self,
        leg: Option<usize>,
        limits: Limits,
        now: Instant,
    ) -> (usize, ResendTerms) {
        let mut record = self.lock();
        let leg = leg.unwrap_or_else(|| {
            record.legs.push(Leg::new(None, None, now));
            record.legs.len() - 1
        });
        if let Some(slot) = record.legs.get_mut(leg) {
            slot.over = false;
            slot.scope.limits = slot.scope.limits.merge(limits);
        }
        let terms = record.terms(Some(leg));
        (leg, terms)
    }

    /// Registers a gate for a leg or for the call; `false` if it is there already.
    pub(super) fn add_gate(&self, leg: Option<usize>, driven: bool, gate: &Arc<dyn Gate>) -> bool {
        let mut guard = self.lock();
        let record = &mut *guard;
        let there = match leg {
            Some(leg) => record.scopes(leg).any(|s| s.has(gate)),
            None => record.scope.has(gate),
        };
        if there {
            return false;
        }
        let Some(leg) = leg else {
            record.scope.add(gate);
            return true;
        };
        let Some(slot) = record.legs.get_mut(leg) else {
            return false;
        };
        if driven && slot.over {
            return false;
        }
        slot.scope.add(gate);
        true
    }

    /// Leaves it to the driver of a leg to leave a gate that was entered; `false` if that driver has
    /// left. A request may get here after it, out of the queue of a buffer.
    pub(super) fn add_guest(&self, leg: usize, gate: &Arc<dyn Gate>) -> bool {
        let mut record = self.lock();
        let Some(slot) = record.leg_mut(leg).filter(|slot| !slot.over) else {
            return false;
        };
        slot.guests.push(Arc::clone(gate));
        true
    }

    /// The gates that the driver of a leg must leave.
    pub(super) fn take_guests(&self, leg: usize) -> SmallVec<[Arc<dyn Gate>; 1]> {
        let mut record = self.lock();
        record
            .legs
            .get_mut(leg)
            .map(|slot| {
                slot.over = true;
                std::mem::take(&mut slot.guests)
            })
            .unwrap_or_default()
    }

    /// Enters an outcome, and gives the situation after it; none after a success, where nothing
    /// is left to decide.
    pub(super) fn end_attempt(&self, leg: usize, ended: Ended<'_>) -> (Told, Option<Situation>) {
        let mut record = self.lock();
        let told = record.told(leg);
        let situation = (ended.reading.class() != Class::Success)
            .then(|| record.situation(leg, ended.reading, ended.end));
        record.enter(leg, ended);
        let situation = situation.map(|situation| Situation {
            // With this send included.
            call_sends: record.sends,
            around: record.lineage(Some(leg)).skip(1).map(|l| l.total).collect(),
            ..situation
        });
        (told, situation)
    }

    /// The situation as [`end_attempt`](Self::end_attempt) will give it, nothing entered.
    pub(super) fn preview(&self, leg: usize, reading: &Reading, now: Instant) -> Situation {
        self.lock().situation(leg, reading, now)
    }

    /// The driver will wait and send again.
    pub(super) fn will_wait(&self, leg: usize, wait: Duration, reading: &Reading) {
        let mut record = self.lock();
        record.waited = record.waited.saturating_add(wait);
        record.lineage_mut(leg, |slot| {
            slot.total.waited = slot.total.waited.saturating_add(wait);
        });
        if let Some(last) = record.last_attempt_mut(leg) {
            last.story().wait = Some(wait);
        }
        let Some(slot) = record.leg_mut(leg) else {
            return;
        };
        slot.waited = slot.waited.saturating_add(wait);
        if reading.class() == Class::Refused {
            slot.unsent = slot.unsent.saturating_add(1);
        } else {
            slot.counts.last_wait = (!asks_for_wait(reading)).then_some(wait);
        }
    }

    /// The call came so far.
    pub(super) fn saw(&self, now: Instant) {
        self.lock().seen = now;
    }

    /// No further send on this leg.
    pub(super) fn stop(&self, leg: usize, cause: Cause) {
        let mut record = self.lock();
        if let Some(last) = record.last_attempt_mut(leg) {
            last.story().cause = Some(cause);
        }
        if let Some(slot) = record.leg_mut(leg) {
            slot.cause = Some(cause);
        }
    }

    /// Why the last attempt of a leg was the only one.
    pub(super) fn not_replayable(&self, leg: usize, why: NotReplayable) {
        if let Some(last) = self.lock().last_attempt_mut(leg) {
            last.story().not_replayable = Some(why);
        }
    }

    /// The gates of the call, of a leg and of the legs around it, each once.
    pub(super) fn gates(&self, leg: usize) -> SmallVec<[Arc<dyn Gate>; 2]> {
        let record = self.lock();
        let mut gates = SmallVec::<[Arc<dyn Gate>; 2]>::new();
        for gate in record.scopes(leg).flat_map(|scope| &scope.gates) {
            if !gates.iter().any(|g| Arc::ptr_eq(g, &gate.gate)) {
                gates.push(Arc::clone(&gate.gate));
            }
        }
        gates
    }

    /// The same gates, to be told of an attempt on this leg; and whether it is the first that each
    /// is told of.
    pub(super) fn tell_gates(&self, leg: usize) -> SmallVec<[(Arc<dyn Gate>, bool); 2]> {
        let mut record = self.lock();
        let mut gates = SmallVec::<[(Arc<dyn Gate>, bool); 2]>::new();
        let mut tell = |scope: &mut Scope| {
            for entered in &mut scope.gates {
                let first = !std::mem::replace(&mut entered.told, true);
                if !gates.iter().any(|(g, _)| Arc::ptr_eq(g, &entered.gate)) {
                    gates.push((Arc::clone(&entered.gate), first));
                }
            }
        };
        record.lineage_mut(leg, |slot| tell(&mut slot.scope));
        tell(&mut record.scope);
        gates
    }
}

impl Record {
    /// Enters an outcome.
    pub(super) fn enter(&mut self, leg: usize, ended: Ended<'_>) {
        self.seen = ended.end;
        let class = ended.reading.class();
        let Some(slot) = self.legs.get_mut(leg) else {
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
