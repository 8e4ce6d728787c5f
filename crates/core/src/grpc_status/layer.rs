use std::time::Duration;

use tower_layer::Layer;

use super::GrpcStatus;
use crate::hint;

/// How long a first frame is waited for.
const WITHIN: Duration = Duration::from_secs(1);

/// Reads a gRPC status that comes in trailers within the attempt. See the [module docs](super).
#[derive(Clone, Debug)]
pub struct GrpcStatusLayer {
    within: Duration,
    hints: hint::Reader,
}

impl GrpcStatusLayer {
    /// Waits at most 1 s for the first frame.
    pub fn new() -> Self {
        Self {
            within: WITHIN,
            hints: hint::Reader::new(),
        }
    }

    /// The longest wait for the first frame, from the head on; 1 s by default. What has none by then
    /// is given on as it is. With zero only a frame that came with the head is looked at; with
    /// `Duration::MAX` the wait ends with the attempt.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.within = limit;
        self
    }

    /// Reads when to come back with the user's own signals first: in trailers, those that
    /// [`Http::read_hints`](crate::Http::read_hints) finds in heads.
    #[must_use]
    pub fn read_hints(mut self, reader: hint::Reader) -> Self {
        self.hints = reader;
        self
    }
}

impl Default for GrpcStatusLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for GrpcStatusLayer {
    type Service = GrpcStatus<S>;

    fn layer(&self, inner: S) -> Self::Service {
        GrpcStatus::new(inner, self.within, self.hints.clone())
    }
}
