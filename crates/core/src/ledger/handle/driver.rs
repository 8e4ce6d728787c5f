//! The driver's side of a handle.

use std::{sync::Arc, time::Duration};

use smallvec::SmallVec;
use tokio::time::Instant;

use super::Ledger;
use crate::{
    Class, Limits, Reading, ResendTerms,
    gate::Gate,
    ledger::{leg::Ended, record::Situation},
    metrics,
};

impl Ledger {
    pub(crate) fn is_driven(&self) -> bool {
        self.place.driven
    }

    /// Takes part as the driver, on a leg of its own where there is none.
    pub(crate) fn drive(&mut self, limits: Limits, now: Instant) -> ResendTerms {
        self.place.driven = true;
        let (leg, terms) = self.shared.drive(self.place.leg, limits, now);
        self.place.leg = Some(leg);
        terms
    }

    /// Puts the handle of a request, which is of this call, in this place: attempt number so and
    /// so below a driver.
    pub(crate) fn mark(&self, handle: &mut Self, attempt: u32) {
        if Arc::ptr_eq(&self.shared, &handle.shared) {
            // The usual case, without counting references up and down.
            handle.place = self.place;
        } else {
            handle.clone_from(self);
        }
        handle.place.attempt = attempt;
    }

    /// Enters an outcome, tells the gates, and gives the situation after it; none after a success.
    pub(crate) fn end_attempt(&self, ended: Ended<'_>) -> Option<Situation> {
        let leg = self.place.leg?;
        let (told, situation) = self.shared.end_attempt(leg, ended);
        if told.counted {
            metrics::attempt(self.target(), ended.reading.class());
        }
        if told.gated && ended.reading.class() != Class::Refused {
            let class = ended.reading.class();
            for (gate, first) in self.shared.tell_gates(leg) {
                if first {
                    gate.first_end(class, ended.end);
                }
                gate.attempt_end(class, ended.end);
            }
        }
        situation
    }

    /// The driver's leg is over: leaves the gates that layers below it entered.
    pub(crate) fn leave_gates(&self, now: Instant) {
        if let Some(leg) = self.place.leg {
            for gate in self.shared.take_guests(leg) {
                gate.leave(now);
            }
        }
    }

    pub(crate) fn preview(&self, reading: &Reading, now: Instant) -> Situation {
        match self.place.leg {
            Some(leg) => self.shared.preview(leg, reading, now),
            None => Situation::default(),
        }
    }

    pub(crate) fn will_wait(&self, wait: Duration, reading: &Reading) {
        if let Some(leg) = self.place.leg {
            self.shared.will_wait(leg, wait, reading);
        }
    }

    pub(crate) fn saw(&self, now: Instant) {
        self.shared.saw(now);
    }

    pub(crate) fn gates(&self) -> SmallVec<[Arc<dyn Gate>; 2]> {
        match self.place.leg {
            Some(leg) => self.shared.gates(leg),
            None => SmallVec::new(),
        }
    }
}
