//! Policies of the user's own, in the place of those that a file sets.

use std::{fmt, sync::Arc};

use http::{HeaderValue, Response};
use tower::util::BoxCloneSyncService;
use tower_circuit_breaker::Breaker;
use tower_spillway_core::{BoxError, Failure, Gate, Policy, Reading};

use super::stack::{AnswerBody, ChatRequest, ChatResponse};

/// A retrying policy over answers.
pub(super) type AnyPolicy = Arc<dyn Policy<ChatResponse> + Send + Sync>;

/// Says what an outcome means, and with it whether a call stays, goes on or ends; `None` leaves
/// it as the vendor's table reads it.
pub(super) type HopRule =
    Arc<dyn Fn(Result<&ChatResponse, Failure<'_>>) -> Option<Reading> + Send + Sync>;

/// Makes the key of a call that brings none.
pub(super) type MakeKey = Arc<dyn Fn(&ChatRequest) -> HeaderValue + Send + Sync>;

/// The breaker of a target, by its name.
pub(super) type MakeBreaker = Arc<dyn Fn(&str) -> Breaker + Send + Sync>;

/// The client at the bottom.
pub(super) type AnyClient = BoxCloneSyncService<ChatRequest, Response<AnswerBody>, BoxError>;

/// What the user brings.
#[derive(Clone, Default)]
pub(super) struct Own {
    pub(super) backoff: Option<AnyPolicy>,
    pub(super) retry_after: Option<AnyPolicy>,
    pub(super) breaker: Option<MakeBreaker>,
    pub(super) budget: Option<Arc<dyn Gate>>,
    pub(super) hop_rule: Option<HopRule>,
    pub(super) idempotency_key: Option<MakeKey>,
    pub(super) client: Option<AnyClient>,
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own")
            .field("backoff", &self.backoff.is_some())
            .field("retry_after", &self.retry_after.is_some())
            .field("breaker", &self.breaker.is_some())
            .field("budget", &self.budget.is_some())
            .field("hop_rule", &self.hop_rule.is_some())
            .field("idempotency_key", &self.idempotency_key.is_some())
            .field("client", &self.client.is_some())
            .finish()
    }
}
