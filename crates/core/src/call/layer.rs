use std::time::Duration;

use tower_layer::Layer;

use super::Call;
use crate::Http;

/// Bounds a whole call and records it. See the [module docs](super).
#[derive(Clone, Debug, Default)]
pub struct CallLayer<A = Http> {
    pub(super) terms: Terms,
    pub(super) adapter: A,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Terms {
    pub(super) deadline: Option<Duration>,
    pub(super) max_sends: Option<u32>,
    pub(super) must_reach_a_leg: bool,
}

impl CallLayer {
    /// No deadline and no cap: only the record.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<A> CallLayer<A> {
    /// The longest time from the call to its response head, over all attempts and waits.
    ///
    /// Inside one target of a failover it bounds that target, below a retrying layer each attempt.
    ///
    /// No wait is begun that would pass it; an attempt that is out when it passes is dropped, and
    /// the call ends in [`TimedOut`](crate::TimedOut).
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.terms.deadline = Some(deadline);
        self
    }

    /// The most requests that all layers and all targets together may send, the first included.
    /// Inside one target of a failover it is the most that may be sent to that target.
    #[must_use]
    pub fn max_sends(mut self, sends: u32) -> Self {
        self.terms.max_sends = Some(sends);
        self
    }

    /// Warns when no retrying layer or failover below sees the call's ledger.
    ///
    /// Turn it on in tests: a layer in between that rebuilds requests without their extensions
    /// makes every retrying layer below drive on its own, and their sends multiply.
    #[must_use]
    pub fn warn_if_detached(mut self) -> Self {
        self.terms.must_reach_a_leg = true;
        self
    }

    /// Sees requests and responses through another adapter.
    #[must_use]
    pub fn adapter<B>(self, adapter: B) -> CallLayer<B> {
        CallLayer {
            terms: self.terms,
            adapter,
        }
    }
}

impl<S, A: Clone> Layer<S> for CallLayer<A> {
    type Service = Call<S, A>;

    fn layer(&self, inner: S) -> Self::Service {
        Call {
            inner,
            terms: self.terms,
            adapter: self.adapter.clone(),
        }
    }
}
