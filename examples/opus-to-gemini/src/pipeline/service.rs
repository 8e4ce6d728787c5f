//! The pipeline as a tower service.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use pin_project_lite::pin_project;
use secrecy::SecretString;
use tower::util::Oneshot;
use tower_circuit_breaker::Breaker;
use tower_retry_budget::RatioBudget;
use tower_service::Service;
use tower_spillway_core::BoxError;

use super::{
    builder::Builder,
    error::BuildError,
    keyring,
    prepare::wants_stream,
    probe::{Probe, Probing},
    secret::Secrets,
    stack::{Around, ChatRequest, ChatResponse, Stack},
};
use crate::{config::Config, keys};

/// A service for chat requests in OpenAI's shape: Claude Opus first, Gemini when it must be.
///
/// What a caller sends is a body; method, address, credentials and model are set per target, and
/// of its headers only content type, accept, user agent, idempotency key and trace context go on.
/// A vendor's answer, errors included, comes back as it is, with the call's
/// [`Ledger`](tower_spillway_core::Ledger) among its extensions.
///
/// It is always ready: what a call must wait for it waits for itself.
///
/// # Clone
///
/// Clones share everything: connections, breakers and budget.
#[derive(Clone)]
pub struct Pipeline(Arc<Parts>);

/// What a pipeline has.
pub(super) struct Parts {
    /// Each call has a clone of its own of one of the two.
    pub(super) plain: Stack,
    pub(super) streaming: Stack,
    pub(super) around: Around,
    pub(super) breakers: Arc<[Breaker]>,
    pub(super) probes: Arc<[Arc<Probe>]>,
    pub(super) budget: Option<RatioBudget>,
    pub(super) secrets: Secrets,
}

impl Pipeline {
    pub(super) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }

    /// Sets one up, with no target yet.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// From the text of a file: the targets of its chain `default`, with keys from the environment.
    ///
    /// # Errors
    ///
    /// [`BuildError`] has the line of what is wrong, or the variable that is not set.
    ///
    /// ```
    /// use opus_to_gemini::pipeline::Pipeline;
    ///
    /// let error = Pipeline::from_toml("[breaker]\nfailures = \"many\"\n").unwrap_err();
    /// assert!(error.to_string().starts_with("line 2: "));
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, BuildError> {
        Self::from_config(&Config::from_toml(text)?, "default", keys::from_env)?.build()
    }

    /// The targets of a chain, with the key that `key` gives for the name of each variable. What
    /// comes back can be changed before it is built.
    ///
    /// # Errors
    ///
    /// There is no such chain, or a key is missing.
    pub fn from_config(
        config: &Config,
        chain: &str,
        key: impl Fn(&str) -> Option<SecretString>,
    ) -> Result<Builder, BuildError> {
        let names = config
            .targets_of(chain)
            .ok_or_else(|| BuildError::NoChain {
                chain: chain.to_owned(),
            })?;
        let mut builder = Self::builder().config(config.clone());
        for name in names {
            builder = builder.target(keyring::fetch(config, name, &key)?);
        }
        Ok(builder)
    }

    /// The same pipeline with another deadline of a whole call, in the place of both of the
    /// configuration: shorter or longer. The limits of attempts stay.
    #[must_use]
    pub fn within(self, deadline: Duration) -> Self {
        let stack = (self.0.around)(Some(deadline));
        Self::new(Parts {
            plain: stack.clone(),
            streaming: stack,
            around: Arc::clone(&self.0.around),
            breakers: Arc::clone(&self.0.breakers),
            probes: Arc::clone(&self.0.probes),
            budget: self.0.budget.clone(),
            secrets: self.0.secrets.clone(),
        })
    }

    /// The breakers of all targets that have one, in their order.
    pub fn breakers(&self) -> &[Breaker] {
        &self.0.breakers
    }

    /// Futures that find out whether targets are back, for the user to spawn: see
    /// [`probe_with`](Breaker::probe_with). Without them users' calls do.
    ///
    /// Each ends when the pipeline is gone. There is none for a target whose file says `probes =
    /// "users"`, and none twice: what was given out before, by this or by another pipeline of the
    /// same [`Fleet`](super::Fleet), is under way.
    pub fn probes(&self) -> impl Iterator<Item = Probing> + use<> {
        let probes = self.0.probes.iter();
        let started: Vec<_> = probes.filter_map(|probe| probe.start()).collect();
        started.into_iter()
    }

    /// The budget of all retries; `None` if there is none, or one of the user's own.
    pub fn budget(&self) -> Option<&RatioBudget> {
        self.0.budget.as_ref()
    }

    /// The text with every key of this pipeline blotted out, fit to be shown.
    pub fn blot(&self, text: &str) -> String {
        self.0.secrets.blot(text)
    }

    /// Calls it with a request of which it is known whether it asks for a stream.
    pub(crate) fn send(&self, request: ChatRequest, streams: bool) -> ResponseFuture {
        // Streams have a deadline of their own: to the head, not to the last byte.
        let stack = match streams {
            true => &self.0.streaming,
            false => &self.0.plain,
        };
        ResponseFuture {
            call: Oneshot::new(stack.clone(), request),
        }
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.0.secrets
    }
}

impl Service<ChatRequest> for Pipeline {
    type Response = ChatResponse;
    type Error = BoxError;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: ChatRequest) -> Self::Future {
        let streams = wants_stream(&mut request);
        self.send(request, streams)
    }
}

pin_project! {
    /// A call of a [`Pipeline`]. Dropped, it is left where it is.
    pub struct ResponseFuture {
        #[pin]
        call: Oneshot<Stack, ChatRequest>,
    }
}

impl Future for ResponseFuture {
    type Output = Result<ChatResponse, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().call.poll(cx)
    }
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline")
            .field("breakers", &self.0.breakers)
            .field("budget", &self.0.budget)
            .finish_non_exhaustive()
    }
}
