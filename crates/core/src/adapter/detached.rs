//! Any `Clone` request, without a ledger.

use std::error::Error;

use super::{Classify, MayCarry, Read, Resend, ResendTerms, plain};
use crate::{Ledger, Reading, error::NotReplayable};

/// One retrying layer or one breaker alone over any `Req: Clone`: nothing rides in the request,
/// so layers cannot see each other. Use [`Plain`](crate::Plain) to stack them.
///
/// Every request may be sent again, whatever may have been processed.
#[derive(Clone, Copy, Debug)]
pub struct Detached<C>(pub C);

impl<C, Req> MayCarry<Req> for Detached<C> {}

impl<C, Req: Clone> Resend<Req> for Detached<C> {
    fn try_clone(&self, request: &Req) -> Result<Req, NotReplayable> {
        Ok(request.clone())
    }

    fn resend_safe(&self, _request: &Req, _terms: ResendTerms) -> bool {
        true
    }
}

impl<C: Classify<Res>, Res> Read<Res> for Detached<C> {
    fn read(&self, result: Result<&Res, &(dyn Error + 'static)>) -> Reading {
        plain::read(&self.0, result)
    }

    fn holdable(&self, _response: &Res) -> bool {
        true
    }

    fn attach(&self, _response: &mut Res, _ledger: &Ledger) {}
}
