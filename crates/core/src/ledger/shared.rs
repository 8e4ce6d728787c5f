//! What a call's handles share: the record behind one mutex, which is never held across a poll or a
//! callback, and the plans of the legs.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use smallvec::SmallVec;
use tokio::time::Instant;

use super::{
    gates::Dues,
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
    marks: Marks,
}

/// What the usual end of a call needs to know of the record, without its lock. Each is set once or,
/// the last, by whoever holds the lock.
#[derive(Default)]
struct Marks {
    /// A leg was opened.
    has_legs: AtomicBool,
    /// The driver of some leg has left it.
    has_ended: AtomicBool,
    /// The call is over: what comes late is no part of its latency.
    is_over: AtomicBool,
    /// The leg whose success its driver recorded last, from 1.
    succeeded: AtomicU32,
}

/// What follows from the end of an attempt once the lock is gone.
pub(super) struct AfterEnd<T> {
    /// It was an attempt, and not the outcome of a failover below.
    pub(super) counted: bool,
    pub(super) dues: Dues,
    pub(super) situation: T,
}

impl Shared {
    pub(super) fn new(now: Instant, adopted: bool) -> Self {
        Self {
            record: Mutex::new(Record::new(now, adopted)),
            plans: Plans::default(),
            marks: Marks::default(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Record> {
        // Nothing that can panic runs under the lock; a poisoned record is still a record.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has_legs(&self) -> bool {
        self.marks.has_legs.load(Ordering::Acquire)
    }

    /// The call is over, with the last outcome that was recorded.
    pub(super) fn end(&self) {
        self.marks.is_over.store(true, Ordering::Release);
    }

    /// The call is over, without an outcome.
    pub(super) fn cancel(&self, now: Instant) {
        self.end();
        self.lock().finished = Some(now);
    }

    fn add_leg(&self, record: &mut Record, leg: Leg) -> u32 {
        self.marks.has_legs.store(true, Ordering::Release);
        record.add_leg(leg)
    }

    pub(super) fn open_leg(&self, plan: Arc<LegPlan>, parent: Option<u32>, now: Instant) -> u32 {
        let mut record = self.lock();
        if let Some(above) = parent.and_then(|above| record.leg_mut(above)) {
            above.outer = true;
        }
        let leg = self.add_leg(&mut record, Leg::new(true, parent, now));
        self.plans.add(leg, plan);
        leg
    }

    /// Takes up a leg as its driver; opens one where there is none.
    pub(super) fn drive(&self, leg: Option<u32>, limits: Limits, now: Instant) -> u32 {
        let untouched =
            limits == Limits::default() && !self.marks.has_ended.load(Ordering::Acquire);
        if let Some(leg) = leg.filter(|_| untouched) {
            // Nobody has driven it yet, and nothing is to be noted.
            return leg;
        }
        let mut record = self.lock();
        let leg = leg.unwrap_or_else(|| self.add_leg(&mut record, Leg::new(false, None, now)));
        if let Some(slot) = record.leg_mut(leg) {
            slot.over = false;
            slot.limits = slot.limits.merge(limits);
        }
        leg
    }

    /// Registers a gate for a leg or for the call; `false` if it is there already, or if the driver
    /// that would leave it has left.
    pub(super) fn add_gate(&self, leg: Option<u32>, driven: bool, gate: &Arc<dyn Gate>) -> bool {
        let mut record = self.lock();
        let closed = |leg| record.leg(leg).is_none_or(|slot| driven && slot.over);
        if leg.is_some_and(closed) {
            return false;
        }
        record.add_gate(leg, gate)
    }

    /// Leaves it to the driver of a leg to leave a gate that was entered; `false` if that driver has
    /// left. A request may get here after it, out of the queue of a buffer.
    pub(super) fn add_guest(&self, leg: u32, gate: &Arc<dyn Gate>) -> bool {
        let mut record = self.lock();
        if record.leg(leg).is_none_or(|slot| slot.over) {
            return false;
        }
        record.hand_over_gate(leg, gate);
        true
    }

    /// The gates that the driver of a leg must leave, now that it leaves.
    pub(super) fn end_leg(&self, leg: u32) -> Dues {
        let mut record = self.lock();
        self.over(&mut record, leg);
        record.gates_due(leg, false, true)
    }

    fn over(&self, record: &mut Record, leg: u32) {
        self.marks.has_ended.store(true, Ordering::Release);
        if let Some(slot) = record.leg_mut(leg) {
            slot.over = true;
        }
    }

    /// Enters a success: the usual end of an attempt, and that of its leg, in one go. Nothing is left
    /// to decide.
    pub(super) fn succeed(&self, leg: u32, ended: Ended<'_>) -> AfterEnd<()> {
        let mut guard = self.lock();
        let record = &mut *guard;
        self.see(record, ended.end);
        let counted = record.enter(leg, ended);
        self.over(record, leg);
        if counted && record.leg(leg).is_some_and(|slot| slot.named) {
            self.serve(record, leg);
        }
        AfterEnd {
            counted,
            dues: record.gates_due(leg, counted, true),
            situation: (),
        }
    }

    /// Enters any other outcome.
    pub(super) fn end_attempt(&self, leg: u32, ended: Ended<'_>) -> AfterEnd<Box<Situation>> {
        let class = ended.reading.class();
        let mut guard = self.lock();
        let record = &mut *guard;
        self.see(record, ended.end);
        let situation = record.situation(&self.plans, leg, ended.reading, ended.end);
        let counted = record.enter(leg, ended);
        AfterEnd {
            counted,
            dues: record.gates_due(leg, counted && class != Class::Refused, false),
            situation: Box::new(Situation {
                // With this send included.
                call_sends: record.sends,
                around: record.lineage(Some(leg)).skip(1).map(|l| l.total).collect(),
                ..situation
            }),
        }
    }

    /// The caller gets the success of this leg.
    fn serve(&self, record: &mut Record, leg: u32) {
        record.served = Some(leg);
        let from_1 = leg.saturating_add(1);
        self.marks.succeeded.store(from_1, Ordering::Release);
    }

    /// Whether the driver of a leg recorded a success, and nobody another since.
    pub(super) fn has_succeeded(&self, leg: u32) -> bool {
        self.marks.succeeded.load(Ordering::Acquire) == leg.saturating_add(1)
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
        let trouble = slot.in_trouble();
        trouble.waited = trouble.waited.saturating_add(wait);
        if reading.class() == Class::Refused {
            trouble.unsent = trouble.unsent.saturating_add(1);
        } else {
            slot.counts.last_wait = (!asks_for_wait(reading)).then_some(wait);
        }
    }

    /// The call came so far.
    pub(super) fn saw(&self, now: Instant) {
        self.see(&mut self.lock(), now);
    }

    fn see(&self, record: &mut Record, now: Instant) {
        if !self.marks.is_over.load(Ordering::Acquire) {
            record.seen = now;
        }
    }

    /// No further send on this leg.
    pub(super) fn stop(&self, leg: u32, cause: Cause) {
        let mut record = self.lock();
        if let Some(last) = record.last_attempt_mut(leg) {
            last.story().cause = Some(cause);
        }
        if let Some(slot) = record.leg_mut(leg) {
            slot.in_trouble().cause = Some(cause);
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
        self.lock().gates_of(leg)
    }
}
