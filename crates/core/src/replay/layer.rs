use tower_layer::Layer;

use super::Replay;
use crate::InvalidConfig;

/// How much of a body is kept by default: 64 KiB.
pub const DEFAULT_LIMIT: usize = 64 * 1024;

/// Makes request bodies replayable: `Request<B>` becomes `Request<ReplayBody<B>>` for any
/// [`Body`](http_body::Body) `B`. See the [module docs](super).
#[derive(Clone, Copy, Debug)]
pub struct ReplayLayer {
    limit: usize,
}

impl ReplayLayer {
    /// Keeps at most [`DEFAULT_LIMIT`] bytes of each body.
    pub fn new() -> Self {
        Self {
            limit: DEFAULT_LIMIT,
        }
    }

    /// Keeps at most `limit` bytes of each body: data and trailers together. A longer one is sent
    /// once.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] for 0: no body could be sent again, and without the layer the compiler
    /// says so.
    pub fn up_to(limit: usize) -> Result<Self, InvalidConfig> {
        if limit == 0 {
            return Err(InvalidConfig::new("replay limit", "at least 1 byte"));
        }
        Ok(Self { limit })
    }
}

impl Default for ReplayLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for ReplayLayer {
    type Service = Replay<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Replay {
            inner,
            limit: self.limit,
        }
    }
}
