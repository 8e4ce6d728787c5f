//! How a layer sees requests and responses: three small traits and one default type, [`Http`],
//! that implements them all.
//!
//! | adapter | requests | layers |
//! |---|---|---|
//! | [`Http`] | `http::Request<B>` | all; the default |
//! | [`Plain`] | [`Carried<Req>`], any `Req` | all |
//! | [`Detached`] | any `Req: Clone` | one retrying layer or breaker alone |

mod detached;
mod errors;
mod http;
mod plain;
mod replayable;
mod shortage;
mod table;

use std::error::Error;

pub(crate) use self::http::{IDEMPOTENCY_KEY, is_small};
#[cfg(feature = "body")]
pub(crate) use self::table::read_grpc_with;
pub use self::{
    detached::Detached,
    errors::ErrorReader,
    http::Http,
    plain::{Carried, Classify, Plain},
    replayable::ReplayableBody,
    table::{class_of_grpc, class_of_status, read_grpc},
};
use crate::{Ledger, Reading, attempt_timeout::AttemptLimits, error::NotReplayable, hint::Hint};

/// Whether requests carry a [`Ledger`]. Every adapter says so; the answer for most is one line.
pub trait MayCarry<Req> {
    /// The carrying side of this adapter, if it has one.
    fn carrier(&self) -> Option<&dyn Carry<Req>> {
        None
    }
}

/// Requests that carry a [`Ledger`], so that separate layers can act as one.
///
/// `Call`, `RetryBudget` and `Failover` require it: over requests that carry nothing they could
/// do nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not carry a ledger in `{Req}`, so this layer could do nothing",
    label = "needs an adapter that carries a ledger",
    note = "use `Http` with `http::Request`, or `Plain` with `Carried<Req>`"
)]
pub trait Carry<Req>: MayCarry<Req> {
    /// The ledger in a request.
    fn ledger_mut<'r>(&self, request: &'r mut Req) -> Option<&'r mut Ledger>;

    /// Puts a ledger in, in the place of any other.
    fn open(&self, request: &mut Req, ledger: Ledger);

    /// Removes what authenticates the caller to one target, before the request goes to another.
    fn strip_credentials(&self, request: &mut Req);

    /// Limits of one attempt that travel with the request.
    fn attempt_limits(&self, request: &Req) -> Option<AttemptLimits> {
        let _ = request;
        None
    }
}

/// Requests that can be sent again.
pub trait Resend<Req>: MayCarry<Req> {
    /// A copy to send later. Its ledger handle may be left out: whoever sends it puts one in.
    ///
    /// # Errors
    ///
    /// [`NotReplayable`] says why there can be none; the request is then sent once.
    fn try_clone(&self, request: &Req) -> Result<Req, NotReplayable>;

    /// Whether a copy that was made before a send can still be sent now that the send has ended; in
    /// a response if `answered`, else in an error. Asked before each further send.
    ///
    /// # Errors
    ///
    /// [`NotReplayable`] says what came in between; the outcome at hand is then returned.
    fn still_replayable(&self, copy: &Req, answered: bool) -> Result<(), NotReplayable> {
        let _ = (copy, answered);
        Ok(())
    }

    /// Whether the request may be sent again although the server may have processed it: an
    /// idempotent method, or what `terms` allow.
    fn resend_safe(&self, request: &Req, terms: ResendTerms) -> bool;
}

/// What a target allows beyond idempotent methods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResendTerms {
    /// The target honours an `Idempotency-Key`: a request with one may be sent again.
    pub honours_idempotency_key: bool,
    /// A request that may have been processed may be sent again all the same.
    pub retry_ambiguous: bool,
}

impl ResendTerms {
    /// What either allows.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            honours_idempotency_key: self.honours_idempotency_key || other.honours_idempotency_key,
            retry_ambiguous: self.retry_ambiguous || other.retry_ambiguous,
        }
    }
}

/// How responses and errors are read.
pub trait Read<Res> {
    /// What an outcome means.
    fn read(&self, result: Result<&Res, &(dyn Error + 'static)>) -> Reading;

    /// Whether the response is small enough to be kept while waiting.
    fn holdable(&self, response: &Res) -> bool;

    /// What a success says about when the next requests should come, where it says it beside its
    /// reading. Asked only by layers that hold requests back.
    fn hint_on_success(&self, response: &Res) -> Option<Hint> {
        let _ = response;
        None
    }

    /// Puts the call's ledger on the response, for the caller.
    fn attach(&self, response: &mut Res, ledger: &Ledger);
}
