//! The layer that opened a ledger.

use super::Ledger;
use crate::{Class, Limits, Reading, clock, ledger::leg::Ended};

/// Held by the layer that opened a call's ledger: the call ends when it does.
#[derive(Debug)]
pub struct Owner {
    ledger: Ledger,
    finished: bool,
}

impl Owner {
    pub(super) fn new(ledger: Ledger) -> Self {
        Self {
            ledger,
            finished: false,
        }
    }

    /// Whether some layer below opened a leg: `false` means that no driver or failover saw the
    /// handle.
    pub fn reached_a_leg(&self) -> bool {
        !self.ledger.untouched()
    }

    /// The outcome is in. Where no driver and no failover recorded an attempt, this one does.
    pub fn finish(mut self, reading: &Reading) {
        self.finished = true;
        let mut record = self.ledger.shared.lock();
        if record.legs.is_empty() {
            drop(record);
            self.record_alone(reading);
            record = self.ledger.shared.lock();
        }
        record.finished = Some(record.seen);
    }

    fn record_alone(&self, reading: &Reading) {
        let mut ledger = self.ledger.clone();
        let start = ledger.opened_at();
        // What was dropped gave nothing; the error of the layer that dropped it is no outcome of it.
        let dropped = ledger.abandoned().map(|_| Reading::new(Class::Cancelled));
        ledger.drive(Limits::default(), start);
        ledger.end_attempt(Ended {
            reading: dropped.as_ref().unwrap_or(reading),
            start,
            end: clock::now(),
        });
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if self.ledger.untouched() {
            self.record_alone(&Reading::new(Class::Cancelled));
        }
        let now = clock::now();
        self.ledger.shared.lock().finished = Some(now);
    }
}

impl Ledger {
    /// Nothing below recorded an attempt: the stack has no driver and no failover.
    fn untouched(&self) -> bool {
        self.shared.lock().legs.is_empty()
    }
}
