//! What a call's handles share: the record behind one mutex, which is never held across a poll or a
//! callback, and the plans of the legs.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use smallvec::SmallVec;
use tokio::time::Instant;

use super::{
    leg::{Ended, Leg, asks_for_wait},
    plan::{LegPlan, Plans},
    record::Record,
    situation::Situation,
};
use crate::{Cause, Class, Limits, NotReplayable, Reading, gate::Gate};

/// The shared part of a ledger.
pub(super) struct Shared {
    record: Mutex<Record>,
    pub(super) plans: Plans,
}

/// What follows from the end of an attempt once the lock is gone.
pub(super) struct AfterEnd {
    /// It was an attempt, and not the outcome of a failover below.
    pub(super) counted: bool,
    /// Who is to be told, and whether it is the first that each is told of.
    pub(super) tell: SmallVec<[(Arc<dyn Gate>, bool); 2]>,
    /// What the driver is to leave, since its leg ends with a success.
    pub(super) leave: Guests,
    /// Boxed: none after a success, where nothing is left to decide.
    pub(super) situation: Option<Box<Situation>>,
}

/// Gates that layers below a driver entered.
pub(super) type Guests = SmallVec<[Arc<dyn Gate>; 1]>;

impl Shared {
    pub(super) fn new(now: Instant, adopted: bool) -> Self {
        Self {
            record: Mutex::new(Record::new(now, adopted)),
            plans: Plans::default(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Record> {
        // Nothing that can panic runs under the lock; a poisoned record is still a record.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn open_leg(&self, plan: Arc<LegPlan>, parent: Option<u32>, now: Instant) -> u32 {
        let mut record = self.lock();
        if let Some(above) = parent.and_then(|above| record.leg_mut(above)) {
            above.outer = true;
        }
        let leg = record.add_leg(Leg::new(true, parent, now));
        self.plans.add(leg, plan);
        leg
    }

    /// Takes up a leg as its driver; opens one where there is none.
    pub(super) fn drive(&self, leg: Option<u32>, limits: Limits, now: Instant) -> u32 {
        let mut record = self.lock();
        let leg = leg.unwrap_or_else(|| record.add_leg(Leg::new(false, None, now)));
        if let Some(slot) = record.leg_mut(leg) {
            slot.over = false;
            slot.scope.limits = slot.scope.limits.merge(limits);
        }
        leg
    }

    /// Registers a gate for a leg or for the call; `false` if it is there already.
    pub(super) fn add_gate(&self, leg: Option<u32>, driven: bool, gate: &Arc<dyn Gate>) -> bool {
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
        let Some(slot) = record.leg_mut(leg) else {
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
    pub(super) fn add_guest(&self, leg: u32, gate: &Arc<dyn Gate>) -> bool {
        let mut record = self.lock();
        let Some(slot) = record.leg_mut(leg).filter(|slot| !slot.over) else {
            return false;
        };
        slot.guests.push(Arc::clone(gate));
        true
    }

    /// The gates that the driver of a leg must leave.
    pub(super) fn take_guests(&self, leg: u32) -> Guests {
        let mut record = self.lock();
        record.leg_mut(leg).map(Leg::end).unwrap_or_default()
    }

    /// Enters an outcome.
    pub(super) fn end_attempt(&self, leg: u32, ended: Ended<'_>) -> AfterEnd {
        let mut guard = self.lock();
        let record = &mut *guard;
        let class = ended.reading.class();
        let counted = record.leg(leg).is_some_and(|slot| !slot.outer);
        let situation = (class != Class::Success)
            .then(|| record.situation(&self.plans, leg, ended.reading, ended.end));
        record.enter(leg, ended);
        let situation = situation.map(|situation| {
            Box::new(Situation {
                // With this send included.
                call_sends: record.sends,
                around: record.lineage(Some(leg)).skip(1).map(|l| l.total).collect(),
                ..situation
            })
        });
        let tell = if counted && class != Class::Refused {
            record.gates_to_tell(leg)
        } else {
            SmallVec::new()
        };
        // In one go with the rest, since it is the usual end.
        let ends = record.leg_mut(leg).filter(|_| class == Class::Success);
        AfterEnd {
            counted,
            tell,
            leave: ends.map(Leg::end).unwrap_or_default(),
            situation,
        }
    }

    /// The situation as [`end_attempt`](Self::end_attempt) will give it, nothing entered.
    pub(super) fn preview(&self, leg: u32, reading: &Reading, now: Instant) -> Situation {
        self.lock().situation(&self.plans, leg, reading, now)
    }

    /// The driver will wait and send again.
    pub(super) fn will_wait(&self, leg: u32, wait: Duration, reading: &Reading) {
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
    pub(super) fn stop(&self, leg: u32, cause: Cause) {
        let mut record = self.lock();
        if let Some(last) = record.last_attempt_mut(leg) {
            last.story().cause = Some(cause);
        }
        if let Some(slot) = record.leg_mut(leg) {
            slot.cause = Some(cause);
        }
    }

    /// Why the last attempt of a leg was the only one.
    pub(super) fn not_replayable(&self, leg: u32, why: NotReplayable) {
        if let Some(last) = self.lock().last_attempt_mut(leg) {
            last.story().not_replayable = Some(why);
        }
    }

    /// The gates of the call, of a leg and of the legs around it, each once.
    pub(super) fn gates(&self, leg: u32) -> SmallVec<[Arc<dyn Gate>; 2]> {
        let record = self.lock();
        let mut gates = SmallVec::<[Arc<dyn Gate>; 2]>::new();
        for gate in record.scopes(leg).flat_map(|scope| &scope.gates) {
            if !gates.iter().any(|g| Arc::ptr_eq(g, &gate.gate)) {
                gates.push(Arc::clone(&gate.gate));
            }
        }
        gates
    }
}
