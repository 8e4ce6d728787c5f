//! Probes of a target that no user waits for.

use std::{
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tokio::sync::watch;
use tower_circuit_breaker::Breaker;

use super::{
    error::BuildError,
    prepare::Fit,
    stack::{ChatRequest, Elsewhere, Layers, Stack},
    state::State,
};
use crate::config::Probes;

/// A future to spawn. See [`Pipeline::probes`](super::Pipeline::probes).
pub type Probing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How a target is probed.
pub(super) struct Probe {
    breaker: Breaker,
    below: Stack,
    request: ChatRequest,
    every: Duration,
    within: Duration,
    /// Whether somebody was given the future.
    started: Arc<AtomicBool>,
    /// Gone with this, it ends the future.
    life: watch::Sender<()>,
}

/// As small as a chat can be.
const PING: &[u8] = br#"{"messages":[{"role":"user","content":"ping"}],"max_tokens":1}"#;

impl Probe {
    /// `None` where users' calls are the probes.
    pub(super) fn new(
        state: &State,
        layers: &Layers,
        fit: &Fit,
    ) -> Result<Option<Self>, BuildError> {
        let figures = state.breaker_figures();
        let (Some(breaker), Probes::Own) = (&state.breaker, figures.probes) else {
            return Ok(None);
        };
        let mut request = Request::new(Full::new(Bytes::from_static(PING)));
        fit.apply(&mut request).map_err(BuildError::Probe)?;
        Ok(Some(Self {
            breaker: breaker.clone(),
            below: layers.below(state, Elsewhere::default())?,
            request,
            every: figures.probe_every,
            // It answers with one token, so it may take no longer than any first one; and one that
            // hangs must not keep the next from finding out that the target is back.
            within: state
                .upstream
                .target
                .streaming_within
                .min(figures.probe_every * 3),
            started: Arc::default(),
            life: watch::Sender::new(()),
        }))
    }

    /// `None` if it runs.
    pub(super) fn start(&self) -> Option<Probing> {
        if self.started.swap(true, Ordering::AcqRel) {
            return None;
        }
        let running = Running(Arc::clone(&self.started));
        let prober = self
            .breaker
            .probe_with(self.below.clone(), self.request.clone(), self.every);
        let prober = prober.ok()?.time_limit(self.within);
        let mut life = self.life.subscribe();
        Some(Box::pin(async move {
            let _running = running;
            tokio::select! {
                _ = prober => {}
                // Nothing is ever sent: it is over when the probe is gone.
                _ = life.changed() => {}
            }
        }))
    }
}

/// A future that was given out, until it is dropped.
struct Running(Arc<AtomicBool>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
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
