//! The driver's side of a handle.

use std::{sync::Arc, time::Duration};

use smallvec::SmallVec;
use tokio::time::Instant;

use super::{Ledger, Place};
use crate::{
    Carry, Class, Limits, Reading,
    gate::Gate,
    ledger::{gates::Tell, leg::Ended, shared::AfterEnd, situation::Situation},
    metrics,
};

impl Ledger {
    pub(crate) fn is_driven(&self) -> bool {
        self.place.driven
    }

    /// Takes part as the driver, on a leg of its own where there is none.
    pub(crate) fn drive(&mut self, limits: Limits, now: Instant) {
        self.place.driven = true;
        self.place.leg = Some(self.shared.drive(self.place.leg, limits, now));
    }

    /// Marks the request in place: a driver is above, and this is its attempt of that number.
    pub(crate) fn mark<Req>(&self, carrier: &dyn Carry<Req>, request: &mut Req, attempt: u32) {
        let place = Place {
            attempt,
            ..self.place
        };
        self.put(place, carrier, request);
    }

    /// Enters an outcome, tells the gates, and gives the situation after it. None after a success:
    /// nothing is left to decide, so that ends the leg too.
    pub(crate) fn end_attempt(&self, ended: Ended<'_>) -> Option<Box<Situation>> {
        let leg = self.place.leg?;
        if ended.reading.class() == Class::Success {
            let after = self.shared.succeed(leg, ended);
            self.tell(after, ended);
            return None;
        }
        let after = self.shared.end_attempt(leg, ended);
        Some(self.tell(after, ended))
    }

    fn tell<T>(&self, after: AfterEnd<T>, ended: Ended<'_>) -> T {
        let class = ended.reading.class();
        if after.counted {
            metrics::attempt(self.target(), class);
        }
        for due in after.dues {
            if due.tell == Tell::First {
                due.gate.first_end(class, ended.end);
            }
            if due.tell != Tell::Nothing {
                due.gate.attempt_end(class, ended.end);
            }
            if due.leave {
                due.gate.leave(ended.end);
            }
        }
        after.situation
    }

    /// The driver's leg is over: leaves the gates that layers below it entered.
    pub(crate) fn leave_gates(&self, now: Instant) {
        if let Some(leg) = self.place.leg {
            for due in self.shared.end_leg(leg) {
                due.gate.leave(now);
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
