use std::{marker::PhantomData, time::Duration};

use tower_layer::Layer;

use super::AttemptTimeout;
use crate::Http;

/// Limits of one attempt. As a request extension they take the place of the layer's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttemptLimits {
    /// From the sending to the response head; `None` for no limit.
    pub head: Option<Duration>,
    /// From the sending to the last byte of the body; `None` for no limit. Kept only by a layer
    /// that limits the body at all: see [`AttemptTimeoutLayer::and_last_byte`].
    pub last_byte: Option<Duration>,
}

/// The response body is left alone.
#[derive(Clone, Copy, Debug)]
pub struct ToHead;

/// The response body is wrapped in a [`TimedBody`](super::TimedBody).
#[derive(Clone, Copy, Debug)]
pub struct ToLastByte;

/// Limits the time of each attempt. See the [module docs](super).
#[derive(Clone, Debug)]
pub struct AttemptTimeoutLayer<A = Http, To = ToHead> {
    limits: AttemptLimits,
    adapter: A,
    to: PhantomData<fn() -> To>,
}

impl AttemptTimeoutLayer {
    /// The longest time from sending to the response head.
    pub fn to_head(limit: Duration) -> Self {
        Self::new(AttemptLimits {
            head: Some(limit),
            last_byte: None,
        })
    }

    /// Limits the head as `limits` say.
    pub fn new(limits: AttemptLimits) -> Self {
        Self {
            limits,
            adapter: Http::default(),
            to: PhantomData,
        }
    }
}

impl<A> AttemptTimeoutLayer<A, ToHead> {
    /// Limits the body too: `limit` is the longest time from sending to its last byte. `None`
    /// leaves that to the [`AttemptLimits`] of each request.
    ///
    /// The type of the response body changes.
    #[must_use]
    pub fn and_last_byte(self, limit: Option<Duration>) -> AttemptTimeoutLayer<A, ToLastByte> {
        AttemptTimeoutLayer {
            limits: AttemptLimits {
                last_byte: limit,
                ..self.limits
            },
            adapter: self.adapter,
            to: PhantomData,
        }
    }
}

impl<A, To> AttemptTimeoutLayer<A, To> {
    /// Sees requests through another adapter.
    #[must_use]
    pub fn adapter<B>(self, adapter: B) -> AttemptTimeoutLayer<B, To> {
        AttemptTimeoutLayer {
            limits: self.limits,
            adapter,
            to: PhantomData,
        }
    }
}

impl<S, A: Clone, To> Layer<S> for AttemptTimeoutLayer<A, To> {
    type Service = AttemptTimeout<S, A, To>;

    fn layer(&self, inner: S) -> Self::Service {
        AttemptTimeout {
            inner,
            limits: self.limits,
            adapter: self.adapter.clone(),
            to: PhantomData,
        }
    }
}
