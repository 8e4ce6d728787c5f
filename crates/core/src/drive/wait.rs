//! What a driver keeps while it waits.

use crate::{
    BoxError, Class, Resend,
    error::NotReplayable,
    gate::{Ask, Grant},
    ledger::Ledger,
};

/// The copy of a request to send next.
pub(super) enum Spare<Req> {
    /// Here it is.
    Copy(Req),
    /// None can be made.
    Never(NotReplayable),
    /// It is under way.
    Taken,
}

impl<Req> Spare<Req> {
    /// Whether it can be sent after an outcome, a response if `answered`.
    pub(super) fn usable(
        &self,
        adapter: &impl Resend<Req>,
        answered: bool,
    ) -> Result<(), NotReplayable> {
        match self {
            Self::Copy(request) => adapter.still_replayable(request, answered),
            Self::Taken => Ok(()),
            Self::Never(why) => Err(*why),
        }
    }

    pub(super) fn take(&mut self) -> Option<Req> {
        match std::mem::replace(self, Self::Taken) {
            Self::Copy(request) => Some(request),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// Reservations for the retry to come or under way, one of each gate.
#[derive(Default)]
pub(super) struct Grants(Vec<Grant>);

impl Grants {
    /// All gates grant, or all get back what they gave.
    pub(super) fn withdraw(ledger: &Ledger, ask: &Ask) -> Option<Self> {
        let gates = ledger.gates();
        let mut grants = Vec::with_capacity(gates.len());
        for gate in &gates {
            grants.push(Grant::withdraw(gate, ask)?);
        }
        Some(Self(grants))
    }

    pub(super) fn sent(&mut self) {
        for grant in &mut self.0 {
            grant.sent();
        }
    }

    /// The retry was refused here: it did not leave after all.
    pub(super) fn unsent(&mut self) {
        for grant in &mut self.0 {
            grant.unsent();
        }
    }

    pub(super) fn finish(&mut self, class: Class) {
        while let Some(grant) = self.0.pop() {
            grant.finish(class);
        }
    }

    /// Settles what is open: given back if it never left, cancelled if it is under way.
    pub(super) fn release(&mut self) {
        self.0.clear();
    }
}

/// An outcome kept while waiting, to be returned if nothing better comes. Boxed: only a call that
/// waits pays for it, and a future that is moved is copied.
pub(super) type Held<Res> = Option<Box<Result<Res, BoxError>>>;
