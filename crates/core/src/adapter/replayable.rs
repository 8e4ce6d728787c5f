//! Bodies that can be sent twice.

use crate::error::NotReplayable;

/// A request body that can be sent more than once.
///
/// Every body that is `Clone` is one. Streaming bodies (hyper's `Incoming`, axum's and tonic's
/// `Body`) are not: they need a layer outside that makes them replayable, `ReplayLayer` of the
/// feature `body`.
#[diagnostic::on_unimplemented(
    message = "a request with the body `{Self}` cannot be sent twice",
    label = "this body can be read only once",
    note = "put `ReplayLayer` outside the retrying layers: it records the body as it is first sent",
    note = "or use a body that is `Clone`, for instance `http_body_util::Full<Bytes>`"
)]
pub trait ReplayableBody: Sized {
    /// A copy that yields the same frames from the start.
    ///
    /// # Errors
    ///
    /// [`NotReplayable`] if it cannot, now or ever; it says why.
    fn try_replay(&self) -> Result<Self, NotReplayable>;

    /// Whether this copy, made before a send, can still be sent now that the send has ended; in a
    /// response if `answered`, else in an error.
    ///
    /// # Errors
    ///
    /// [`NotReplayable`] says what came in between: a body may turn out too long to be kept, and
    /// may be only half sent when the response comes.
    fn still_replayable(&self, answered: bool) -> Result<(), NotReplayable> {
        let _ = answered;
        Ok(())
    }
}

#[diagnostic::do_not_recommend]
impl<B: Clone> ReplayableBody for B {
    fn try_replay(&self) -> Result<Self, NotReplayable> {
        Ok(self.clone())
    }
}
