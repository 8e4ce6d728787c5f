//! The pipeline as a tower service.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tower_circuit_breaker::Breaker;
use tower_retry_budget::RatioBudget;
use tower_service::Service;
use tower_spillway_core::BoxError;

use super::{
    builder::Builder,
    prepare::wants_stream,
    secret::Secrets,
    stack::{ChatRequest, ChatResponse, Stack},
};

/// A service for chat requests in OpenAI's shape: Claude Opus first, Gemini when it must be.
///
/// What a caller sends is a body; method, address, credentials and model are set per target, and
/// of its headers only content type, accept, user agent, idempotency key and trace context go on.
/// A vendor's answer, errors included, comes back as it is, with the call's
/// [`Ledger`](tower_spillway_core::Ledger) among its extensions.
///
/// # Clone
///
/// Clones share connections, breakers and budget.
#[derive(Clone)]
pub struct Pipeline {
    pub(super) plain: Stack,
    pub(super) streaming: Stack,
    pub(super) breakers: Arc<[Breaker]>,
    pub(super) budget: RatioBudget,
    pub(super) secrets: Secrets,
}

impl Pipeline {
    /// Sets one up, with no target yet.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// The breakers of all targets, in their order.
    pub fn breakers(&self) -> &[Breaker] {
        &self.breakers
    }

    /// The budget of all retries.
    pub fn budget(&self) -> &RatioBudget {
        &self.budget
    }

    /// The text with every key of this pipeline blotted out, fit to be shown.
    pub fn blot(&self, text: &str) -> String {
        self.secrets.blot(text)
    }
}

impl Service<ChatRequest> for Pipeline {
    type Response = ChatResponse;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<ChatResponse, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // Which one is called is known only with the request.
        ready!(self.plain.poll_ready(cx))?;
        self.streaming.poll_ready(cx)
    }

    fn call(&mut self, mut request: ChatRequest) -> Self::Future {
        // Streams have a deadline of their own: to the head, not to the last byte.
        if wants_stream(&mut request) {
            self.streaming.call(request)
        } else {
            self.plain.call(request)
        }
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("breakers", &self.breakers)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}
