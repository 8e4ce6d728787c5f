//! The handle that rides in a request.

mod driver;
mod legs;
mod part;

use std::{fmt, sync::Arc, time::Duration};

use tokio::time::Instant;

pub use self::{legs::LegMark, part::Part};
use super::{
    plan::{LegPlan, TargetName},
    record::Abandoned,
    report::Report,
    shared::Shared,
};
use crate::{
    Carry, Limits, Verdict, clock,
    gate::{Entry, Gate},
};

/// A handle to the record of one call. See the [module docs](super).
///
/// # Clone
///
/// Clones share the record. Each clone keeps its own place in it: which leg, which attempt, and
/// whether a driver is above.
#[derive(Clone)]
pub struct Ledger {
    shared: Arc<Shared>,
    place: Place,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// Taken up by a layer. A handle that is not is an offer of the caller's.
    adopted: bool,
    leg: Option<u32>,
    attempt: u32,
    driven: bool,
}

impl Place {
    const OFFERED: Self = Self {
        adopted: false,
        leg: None,
        attempt: 0,
        driven: false,
    };

    fn on(leg: u32) -> Self {
        Self {
            adopted: true,
            leg: Some(leg),
            ..Self::OFFERED
        }
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Self::new()
    }
}

impl Ledger {
    /// A ledger for a caller to put in a request. It serves one call: a second use opens a fresh
    /// one, with a warning event.
    pub fn new() -> Self {
        Self {
            shared: Arc::new(Shared::new(clock::now(), false)),
            place: Place::OFFERED,
        }
    }

    fn opened(now: Instant) -> Self {
        Self {
            shared: Arc::new(Shared::new(now, true)),
            place: Place {
                adopted: true,
                ..Place::OFFERED
            },
        }
    }

    /// What happened so far.
    pub fn report(&self) -> Report {
        Report::of(&self.shared.lock(), &self.shared.plans)
    }

    /// The target that the request is going to, below a failover.
    #[inline]
    pub fn target(&self) -> Option<&TargetName> {
        self.plan().map(|plan| &plan.target)
    }

    #[inline]
    fn plan(&self) -> Option<&Arc<LegPlan>> {
        self.shared.plans.of(self.place.leg?)
    }

    /// Which attempt of its leg this is, from 1; 0 above the driver.
    pub fn attempt(&self) -> u32 {
        self.place.attempt
    }

    /// A handle to read the report from: what an adapter puts on a response. In a request it
    /// would open a fresh ledger, since this call is over.
    #[must_use]
    pub fn for_caller(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            // Of its place only what names the target.
            place: Place {
                leg: self.place.leg,
                ..Place::OFFERED
            },
        }
    }

    // -- for layers ---------------------------------------------------------------------------

    /// A layer's part in the call of a request. Where there is no ledger, or one that served
    /// another call, this opens one, and the call ends with the layer.
    pub fn enter<Req>(carrier: &dyn Carry<Req>, request: &mut Req) -> Part {
        if let Some(found) = carrier.ledger_mut(request) {
            if found.place.adopted {
                return Part::guest(found.clone());
            }
            let mut record = found.shared.lock();
            if !std::mem::replace(&mut record.adopted, true) {
                let now = clock::now();
                record.opened = now;
                record.seen = now;
                drop(record);
                found.place = Place {
                    adopted: true,
                    ..Place::OFFERED
                };
                return Part::owner(found.clone(), now);
            }
            drop(record);
            tracing::warn!("a ledger was used for a second call; a fresh one was opened");
        }
        let part = Part::unattached();
        carrier.open(request, Self::clone(&part));
        part
    }

    /// The time: of the running chain of `call`s if there is one, else read from the clock.
    pub fn now(&self) -> Instant {
        clock::now()
    }

    /// Runs `call` with `now` as the time of the chain that it starts.
    pub fn during<T>(&self, now: Instant, call: impl FnOnce() -> T) -> T {
        clock::during(now, call)
    }

    /// When the call was opened.
    pub fn opened_at(&self) -> Instant {
        self.shared.lock().opened
    }

    /// The last time that was seen in this call: the end of the last attempt.
    pub fn last_seen(&self) -> Instant {
        self.shared.lock().seen
    }

    /// The deadline of the call, or an earlier one of the leg that this handle is on.
    pub fn deadline(&self) -> Option<Instant> {
        self.shared.lock().deadline(self.place.leg)
    }

    /// Sets a deadline: of this leg below a failover, else of the call; an earlier one stays.
    ///
    /// Nothing below a driver: what bounds one of its attempts must not keep it from the next.
    pub fn set_deadline(&self, deadline: Instant) {
        if self.place.driven {
            return;
        }
        let mut record = self.shared.lock();
        let slot = match self.place.leg {
            Some(leg) => record.leg_mut(leg).map(|leg| &mut leg.deadline),
            None => Some(&mut record.deadline),
        };
        if let Some(slot) = slot {
            *slot = Some(slot.map_or(deadline, |d| d.min(deadline)));
        }
    }

    /// The longest wait that a server may ask for here: the least that a layer of the leg or of the
    /// call set, else the default.
    pub fn longest_wait(&self) -> Duration {
        let record = self.shared.lock();
        let leg = self.place.leg.and_then(|leg| record.leg(leg));
        let own = leg.map_or(record.limits, |leg| leg.limits.merge(record.limits));
        let around = record.lineage(self.place.leg).map(|leg| leg.total.limits);
        let limits = around.fold(own, Limits::merge);
        limits.longest_hint.unwrap_or(Limits::DEFAULT_LONGEST_HINT)
    }

    /// Adds limits: for this leg below a driver or a failover, else for the whole call.
    pub fn limit(&self, limits: Limits) {
        if limits == Limits::default() {
            return;
        }
        let mut record = self.shared.lock();
        let own = match self.place.leg {
            Some(leg) => record.leg_mut(leg).map(|leg| &mut leg.limits),
            None => Some(&mut record.limits),
        };
        if let Some(own) = own {
            *own = own.merge(limits);
        }
    }

    /// Adds limits over all sends below, of every layer: for the leg of a target below a failover,
    /// else for the whole call, whether a driver is above or not. What a budget sets.
    pub fn limit_all(&self, limits: Limits) {
        let mut guard = self.shared.lock();
        let record = &mut *guard;
        let of_target = self
            .place
            .leg
            .and_then(|leg| record.leg_mut(leg))
            .filter(|leg| leg.named);
        let own = match of_target {
            Some(leg) => {
                // A failover below opens further legs, which know nothing of this one's own.
                leg.total.limits = leg.total.limits.merge(limits);
                &mut leg.limits
            }
            None => &mut record.limits,
        };
        *own = own.merge(limits);
    }

    /// Enters a gate: for this leg below a driver or a failover, else for the whole call. Nothing
    /// if it is there already: the same budget is asked once.
    ///
    /// Dropping the [`Entry`] leaves it. Below a driver there is none to keep: a layer there ends
    /// with each attempt, so the driver leaves the gate when its leg ends.
    pub fn enter_gate(&self, gate: Arc<dyn Gate>, now: Instant) -> Option<Entry> {
        let driven = self.place.driven;
        if !self.shared.add_gate(self.place.leg, driven, &gate) {
            return None;
        }
        gate.enter(now);
        if !driven {
            return Some(Entry::entered(gate));
        }
        // After it was entered, or the driver could leave it before.
        let leg = self.place.leg;
        if !leg.is_some_and(|leg| self.shared.add_guest(leg, &gate)) {
            gate.leave(now);
        }
        None
    }

    /// Leaves advice for the driver of this leg, merged with what others left. Without a driver
    /// above there is nobody to advise.
    pub fn advise(&self, verdict: Verdict) {
        if !self.place.driven {
            return;
        }
        let mut record = self.shared.lock();
        if let Some(leg) = self.place.leg.and_then(|leg| record.leg_mut(leg)) {
            let trouble = leg.in_trouble();
            trouble.advice = Some(match trouble.advice {
                Some(before) => before.merge(verdict),
                None => verdict,
            });
        }
    }

    /// Says why what is below will be dropped: before dropping it. On a leg it holds for the leg,
    /// above all legs for the call.
    pub fn abandon(&self, why: Abandoned) {
        let mut record = self.shared.lock();
        let mark = match self.place.leg {
            Some(leg) => match record.leg_mut(leg) {
                Some(leg) => &mut leg.in_trouble().abandoned,
                None => return,
            },
            None => &mut record.abandoned,
        };
        mark.get_or_insert(why);
    }

    /// Why this attempt is being dropped; `None` if the caller left.
    pub fn abandoned(&self) -> Option<Abandoned> {
        let record = self.shared.lock();
        self.place
            .leg
            .and_then(|leg| record.leg(leg)?.trouble().abandoned)
            .or(record.abandoned)
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("target", &self.target())
            .field("leg", &self.place.leg)
            .field("attempt", &self.place.attempt)
            .field("driven", &self.place.driven)
            .finish_non_exhaustive()
    }
}
