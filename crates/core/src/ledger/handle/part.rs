//! A layer's part in a call.

use std::{error::Error, fmt, ops::Deref};

use tokio::time::Instant;

use super::Ledger;
use crate::{BoxError, Class, Limits, Read, Reading, clock, ledger::leg::Ended};

/// A layer's part in a call: its [`Ledger`]. The call ends with the layer that opened it.
pub struct Part {
    ledger: Ledger,
    /// When this layer opened the ledger; `None` if another did, and once the outcome is in.
    opened: Option<Instant>,
}

impl Part {
    pub(super) fn owner(ledger: Ledger, opened: Instant) -> Self {
        Self {
            ledger,
            opened: Some(opened),
        }
    }

    pub(super) fn guest(ledger: Ledger) -> Self {
        Self {
            ledger,
            opened: None,
        }
    }

    /// Opens a ledger that rides in no request.
    pub(crate) fn unattached() -> Self {
        let now = clock::now();
        Self::owner(Ledger::opened(now), now)
    }

    /// The time. Where the call was opened just now, that was it.
    pub fn begun(&self) -> Instant {
        self.opened.unwrap_or_else(clock::now)
    }

    /// Whether this layer opened the ledger, and the call is not over yet.
    pub fn is_owner(&self) -> bool {
        self.opened.is_some()
    }

    /// Whether some layer below opened a leg: `false` means that no driver or failover saw the
    /// handle.
    pub fn reached_a_leg(&self) -> bool {
        self.shared.has_legs()
    }

    /// The outcome of this layer is in. If it opened the ledger the call is over, and a response
    /// carries the record to the caller. Where no driver and no failover recorded an attempt, this
    /// does.
    pub fn finish<Res, A: Read<Res>>(&mut self, adapter: &A, out: &mut Result<Res, BoxError>) {
        if self.opened.is_none() {
            return;
        }
        self.close(|| {
            let view = out.as_ref().map_err(|e| &**e as &(dyn Error + 'static));
            adapter.read(view)
        });
        if let Ok(response) = out {
            adapter.attach(response, &self.ledger);
        }
    }

    fn close(&mut self, reading: impl FnOnce() -> Reading) {
        let Some(opened) = self.opened.take() else {
            return;
        };
        if !self.ledger.shared.has_legs() {
            self.record_alone(opened, &reading());
        }
        self.ledger.shared.end();
    }

    fn record_alone(&self, start: Instant, reading: &Reading) {
        let mut ledger = self.ledger.clone();
        // What was dropped gave nothing; the error of the layer that dropped it is no outcome of it.
        let dropped = ledger.abandoned().map(|_| Reading::new(Class::Cancelled));
        ledger.drive(Limits::default(), start);
        ledger.end_attempt(Ended {
            reading: dropped.as_ref().unwrap_or(reading),
            start,
            end: clock::now(),
        });
    }

    /// Takes part as the driver, on a leg of its own where there is none.
    pub(crate) fn drive(&mut self, limits: Limits, now: Instant) {
        self.ledger.drive(limits, now);
    }
}

impl Deref for Part {
    type Target = Ledger;

    fn deref(&self) -> &Ledger {
        &self.ledger
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.opened.is_none() {
            return;
        }
        self.close(|| Reading::new(Class::Cancelled));
        let now = clock::now();
        self.ledger.shared.cancel(now);
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.ledger, f)
    }
}
