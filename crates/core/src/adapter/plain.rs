//! Any request type, with a ledger at its side.

use std::error::Error;

use super::{Carry, MayCarry, Read, Resend, ResendTerms, errors};
use crate::{
    Ledger, Reading,
    error::{Failure, NotReplayable},
};

/// A request of any type with room for a [`Ledger`]: what [`Plain`] works on.
#[derive(Clone, Debug, Default)]
pub struct Carried<Req> {
    request: Req,
    ledger: Option<Ledger>,
}

impl<Req> Carried<Req> {
    /// A request without a ledger yet.
    pub fn new(request: Req) -> Self {
        Self {
            request,
            ledger: None,
        }
    }

    /// Puts the caller's own ledger in, to read the report from later.
    #[must_use]
    pub fn with_ledger(mut self, ledger: Ledger) -> Self {
        self.ledger = Some(ledger);
        self
    }

    /// The request.
    pub fn get_ref(&self) -> &Req {
        &self.request
    }

    /// The request, to change.
    pub fn get_mut(&mut self) -> &mut Req {
        &mut self.request
    }

    /// The request without its ledger.
    pub fn into_inner(self) -> Req {
        self.request
    }

    /// The ledger, if one is open.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }
}

/// Reads outcomes that are not `http`. Closures over `Result<&Res, Failure<'_>>` that give a
/// [`Class`](crate::Class) or a [`Reading`] implement it.
pub trait Classify<Res> {
    /// What an outcome means.
    fn classify(&self, result: Result<&Res, &(dyn Error + 'static)>) -> Reading;
}

impl<Res, F, R> Classify<Res> for F
where
    F: Fn(Result<&Res, Failure<'_>>) -> R,
    R: Into<Reading>,
{
    fn classify(&self, result: Result<&Res, &(dyn Error + 'static)>) -> Reading {
        self(result.map_err(Failure::new)).into()
    }
}

/// Works on [`Carried<Req>`] for any `Req: Clone` and any response, with the user's own
/// classification: every layer works without `http`.
///
/// Every request may be sent again, whatever may have been processed. Errors of these crates
/// (refusals, time limits) are read before the classification is asked.
#[derive(Clone, Copy, Debug)]
pub struct Plain<C>(pub C);

impl<C, Req> MayCarry<Carried<Req>> for Plain<C> {
    fn carrier(&self) -> Option<&dyn Carry<Carried<Req>>> {
        Some(self)
    }
}

impl<C, Req> Carry<Carried<Req>> for Plain<C> {
    fn ledger_mut<'r>(&self, request: &'r mut Carried<Req>) -> Option<&'r mut Ledger> {
        request.ledger.as_mut()
    }

    fn open(&self, request: &mut Carried<Req>, ledger: Ledger) {
        request.ledger = Some(ledger);
    }

    fn strip_credentials(&self, _request: &mut Carried<Req>) {}
}

impl<C, Req: Clone> Resend<Carried<Req>> for Plain<C> {
    fn try_clone(&self, request: &Carried<Req>) -> Result<Carried<Req>, NotReplayable> {
        // Without the ledger, which whoever sends it puts in.
        Ok(Carried::new(request.request.clone()))
    }

    fn resend_safe(&self, _request: &Carried<Req>, _terms: ResendTerms) -> bool {
        true
    }
}

impl<C: Classify<Res>, Res> Read<Res> for Plain<C> {
    fn read(&self, result: Result<&Res, &(dyn Error + 'static)>) -> Reading {
        read(&self.0, result)
    }

    fn holdable(&self, _response: &Res) -> bool {
        true
    }

    fn attach(&self, _response: &mut Res, _ledger: &Ledger) {}
}

/// Errors of these crates first, then the user's classification.
pub(super) fn read<C: Classify<Res>, Res>(
    classify: &C,
    result: Result<&Res, &(dyn Error + 'static)>,
) -> Reading {
    match result {
        Ok(_) => classify.classify(result),
        Err(error) => errors::own(error).unwrap_or_else(|| classify.classify(result)),
    }
}
