//! One upstream of a failover.

use std::{fmt, sync::Arc, time::Duration};

use tower_spillway_core::{BoxError, ResendTerms, TargetName, ledger::LegPlan};

pub(crate) type Prepare<Req> = Arc<dyn Fn(&mut Req) -> Result<(), BoxError> + Send + Sync>;
pub(crate) type Usable = Arc<dyn Fn() -> bool + Send + Sync>;

/// A named upstream with its own stack, credentials and request rewriting.
///
/// # Credentials
///
/// What authenticates the caller (`authorization`, `proxy-authorization`, `cookie`, `x-api-key`,
/// `api-key`, `x-goog-api-key`) is removed before [`prepare`](Self::prepare) runs, for the first
/// target too: set in `prepare` what this target needs. Nothing set for one target is visible to
/// another.
pub struct Target<S, Req> {
    pub(crate) service: S,
    pub(crate) plan: LegPlan,
    pub(crate) prepare: Option<Prepare<Req>>,
    pub(crate) usable: Option<Usable>,
    pub(crate) inherit_credentials: bool,
}

impl<S, Req> Target<S, Req> {
    /// A target behind `service`. Layers below keep their state (breaker, budget) by its name.
    pub fn new(name: impl Into<TargetName>, service: S) -> Self {
        Self {
            service,
            plan: LegPlan::new(name.into()),
            prepare: None,
            usable: None,
            inherit_credentials: false,
        }
    }

    /// Makes the request fit this target: address, credentials, model. An error counts as a
    /// request that this target cannot serve, and the next one is asked.
    #[must_use]
    pub fn prepare<F>(mut self, prepare: F) -> Self
    where
        F: Fn(&mut Req) -> Result<(), BoxError> + Send + Sync + 'static,
    {
        self.prepare = Some(Arc::new(prepare));
        self
    }

    /// Whether a call could be served here now, asked while an earlier target fails; for instance
    /// "its breaker is not open". Always, by default.
    ///
    /// While it is true, earlier targets do not wait longer than their
    /// [`patience`](Self::patience) and do not retry timeouts.
    #[must_use]
    pub fn usable_if<F>(mut self, usable: F) -> Self
    where
        F: Fn() -> bool + Send + Sync + 'static,
    {
        self.usable = Some(Arc::new(usable));
        self
    }

    /// The longest wait on this target while a later one is usable; equal passes. 2 s by default.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.plan.patience = patience;
        self
    }

    /// Sends on this target while a later one is usable, the first included. 2 by default.
    #[must_use]
    pub fn sends_while_others(mut self, sends: u32) -> Self {
        self.plan.sends_while_others = sends;
        self
    }

    /// This target honours `Idempotency-Key`: a request that has one may be sent again although
    /// it may have been processed.
    #[must_use]
    pub fn honours_idempotency_key(mut self, yes: bool) -> Self {
        self.plan.terms.honours_idempotency_key = yes;
        self
    }

    /// A request that may have been processed here may be sent again, here and on later targets.
    ///
    /// Without it a `POST` that timed out or failed with 5xx neither retries nor goes to the next
    /// target.
    #[must_use]
    pub fn retry_ambiguous(mut self, yes: bool) -> Self {
        self.plan.terms.retry_ambiguous = yes;
        self
    }

    /// The caller's credentials reach this target.
    #[must_use]
    pub fn inherit_credentials(mut self) -> Self {
        self.inherit_credentials = true;
        self
    }

    /// The model that this target serves, for the report.
    #[must_use]
    pub fn model(mut self, model: impl Into<Arc<str>>) -> Self {
        self.plan.model = Some(model.into());
        self
    }

    /// The name.
    pub fn name(&self) -> &TargetName {
        &self.plan.target
    }

    /// What may be sent again.
    pub fn resend_terms(&self) -> ResendTerms {
        self.plan.terms
    }
}

impl<S, Req> fmt::Debug for Target<S, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("name", &self.plan.target)
            .field("model", &self.plan.model)
            .finish_non_exhaustive()
    }
}
