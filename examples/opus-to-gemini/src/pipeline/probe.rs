//! Probes of a target that no user waits for.

use std::{fmt, pin::Pin, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tower_circuit_breaker::Breaker;

use super::{
    error::BuildError,
    prepare::Fit,
    stack::{ChatRequest, Stack},
    upstream::Upstream,
};
use crate::config::{self, Probes};

/// A future to spawn. See [`Pipeline::probes`](super::Pipeline::probes).
pub type Probing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How a target is probed.
#[derive(Clone)]
pub(super) struct Probe {
    breaker: Breaker,
    below: Stack,
    request: ChatRequest,
    every: Duration,
    within: Duration,
}

/// As small as a chat can be.
const PING: &[u8] = br#"{"messages":[{"role":"user","content":"ping"}],"max_tokens":1}"#;

impl Probe {
    /// `None` where users' calls are the probes.
    pub(super) fn new(
        upstream: &Upstream,
        config: &config::Breaker,
        breaker: &Breaker,
        below: &Stack,
        fit: &Fit,
    ) -> Result<Option<Self>, BuildError> {
        if config.probes != Probes::Own {
            return Ok(None);
        }
        let mut request = Request::new(Full::new(Bytes::from_static(PING)));
        fit.apply(&mut request).map_err(BuildError::Probe)?;
        Ok(Some(Self {
            breaker: breaker.clone(),
            below: below.clone(),
            request,
            every: config.probe_every,
            // It answers with one token, so it may take no longer than any first one.
            within: upstream.target.streaming_within,
        }))
    }

    pub(super) fn start(&self) -> Option<Probing> {
        let prober = self
            .breaker
            .probe_with(self.below.clone(), self.request.clone(), self.every);
        let prober = prober.ok()?.time_limit(self.within);
        Some(Box::pin(async move {
            prober.await;
        }))
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe")
            .field("breaker", &self.breaker)
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}
