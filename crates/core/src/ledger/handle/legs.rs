//! A handle on a leg: what a failover, and what is below it, says and asks.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Ledger, Place};
use crate::{
    Carry, Cause, Class, NotReplayable, Reading, ResendTerms, TargetName, clock,
    ledger::{LegPlan, leg::Ended},
};

/// Which leg of a call; without a hold on its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LegMark(u32);

impl Ledger {
    /// Opens a leg on a target: the handle to send down, which no driver has marked.
    ///
    /// The attempt of a driver above is then no attempt of its own.
    #[must_use]
    pub fn open_leg(&self, plan: impl Into<Arc<LegPlan>>, now: Instant) -> Self {
        let leg = self.shared.open_leg(plan.into(), self.place.leg, now);
        self.on_leg(LegMark(leg))
    }

    /// The same, and puts the handle in the request, in the place of any other; for who needs the
    /// leg itself only at its end.
    pub fn open_leg_in<Req>(
        &self,
        plan: impl Into<Arc<LegPlan>>,
        now: Instant,
        carrier: &dyn Carry<Req>,
        request: &mut Req,
    ) -> LegMark {
        let leg = self.shared.open_leg(plan.into(), self.place.leg, now);
        self.put(Place::on(leg), carrier, request);
        LegMark(leg)
    }

    /// The handle on a leg of this call, which no driver has marked.
    #[must_use]
    pub fn on_leg(&self, mark: LegMark) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            place: Place::on(mark.0),
        }
    }

    /// As [`end_leg`](Self::end_leg) on the handle of that leg.
    pub fn end_leg_at(&self, mark: LegMark, reading: &Reading) {
        // The usual end needs no handle.
        if reading.class() != Class::Success || !self.shared.has_succeeded(mark.0) {
            self.on_leg(mark).end_leg(reading);
        }
    }

    pub(super) fn put<Req>(&self, place: Place, carrier: &dyn Carry<Req>, request: &mut Req) {
        match carrier.ledger_mut(request) {
            // The usual case, without counting references up and down.
            Some(handle) if Arc::ptr_eq(&self.shared, &handle.shared) => handle.place = place,
            _ => {
                let shared = Arc::clone(&self.shared);
                carrier.open(request, Self { shared, place });
            }
        }
    }

    /// Enters the outcome of a leg that no driver recorded: one attempt, from the opening of the
    /// leg to now. Nothing where a driver did. A success is what the caller gets, as if
    /// [`serve`](Self::serve) had said so.
    pub fn end_leg(&self, reading: &Reading) {
        let Some(leg) = self.place.leg else { return };
        let succeeded = reading.class() == Class::Success;
        let mut record = self.shared.lock();
        let (start, driven) = match record.leg(leg) {
            Some(slot) => (slot.opened, slot.last_class.is_some()),
            None => return,
        };
        if succeeded {
            record.served = Some(leg);
        } else if record.numbers(record.served).any(|served| served == leg) {
            // What its driver saw, or that of a leg below it, never came up here.
            record.served = None;
        }
        drop(record);
        if driven {
            return;
        }
        self.end_attempt(Ended {
            reading,
            start,
            end: clock::now(),
        });
    }

    /// Says why there is no further send on this leg.
    pub fn stop(&self, cause: Cause) {
        if let Some(leg) = self.place.leg {
            self.shared.stop(leg, cause);
        }
    }

    /// Says that there is no further send on this leg because the request cannot be sent twice.
    pub fn not_replayable(&self, why: NotReplayable) {
        if let Some(leg) = self.place.leg {
            self.shared.stop(leg, Cause::NotReplayable);
            self.shared.not_replayable(leg, why);
        }
        tracing::debug!(
            spillway.target = self.target().map(TargetName::as_str),
            spillway.why = why.why(),
            "the request cannot be sent twice"
        );
    }

    /// Why the driver of this leg did not send again; `None` if there was none or nobody wanted to.
    pub fn cause(&self) -> Option<Cause> {
        let record = self.shared.lock();
        self.place
            .leg
            .and_then(|leg| record.leg(leg)?.trouble().cause)
    }

    /// The caller gets the outcome of this leg.
    pub fn serve(&self) {
        self.shared.lock().served = self.place.leg;
    }

    /// The first content of the answer is there for the caller: token, tool call, reasoning. Of
    /// several the last counts, since what came before it never reached the caller.
    pub fn saw_first_content(&self, now: Instant) {
        self.shared.lock().first_content = Some(now);
    }

    /// The body of this attempt's answer ended so. If it failed after its head was a success, the
    /// record says so from now on; nobody decides anew.
    pub fn end_body(&self, reading: &Reading, now: Instant) {
        if reading.class() == Class::Success {
            return;
        }
        if let Some(leg) = self.place.leg {
            self.shared.lock().end_body(leg, reading, now);
        }
    }

    /// Whether something was really sent on this leg, or on the legs below it.
    pub fn was_sent(&self) -> bool {
        let record = self.shared.lock();
        let leg = self.place.leg.and_then(|leg| record.leg(leg));
        leg.is_some_and(|leg| leg.total.sends > 0)
    }

    /// Whether something that was sent on this leg, or on the legs below it, may have been
    /// processed; not only what was sent last.
    pub fn is_in_doubt(&self) -> bool {
        let record = self.shared.lock();
        let leg = self.place.leg.and_then(|leg| record.leg(leg));
        leg.is_some_and(|leg| leg.in_doubt)
    }

    /// Whether the limits of the call, and of the targets that this is a part of, allow one more
    /// send.
    pub fn may_send(&self) -> bool {
        let record = self.shared.lock();
        if record
            .lineage(self.place.leg)
            .any(|leg| leg.total.is_spent())
        {
            return false;
        }
        record
            .limits
            .max_attempts
            .is_none_or(|most| record.sends < most)
    }

    /// What the target of this leg allows to be sent again.
    pub fn resend_terms(&self) -> ResendTerms {
        self.plan().map(|plan| plan.terms).unwrap_or_default()
    }
}
