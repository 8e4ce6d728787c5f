//! One target, to look at.

use std::{fmt, sync::Arc, time::Duration};

use http::Uri;
use tower_circuit_breaker::Breaker;
use tower_spillway_llm::Vendor;

use super::{
    error::BuildError, prepare::Fit, probe::Probe, stack::Layers, state::State, upstream::Upstream,
};

/// A target of a [`Fleet`](super::Fleet), and how it is.
///
/// # Clone
///
/// Clones are the same target, and so are those of all chains that name it: they share its
/// breaker, its hold, its connections and its permits.
#[derive(Clone)]
pub struct Member(Arc<Inner>);

struct Inner {
    state: State,
    fit: Arc<Fit>,
    probe: Option<Arc<Probe>>,
}

impl Member {
    /// Takes over from `old` what the figures leave as it was.
    pub(super) fn new(
        layers: &Layers,
        upstream: Upstream,
        old: Option<&Self>,
    ) -> Result<Self, BuildError> {
        let old = old.map(|old| &*old.0);
        let fit = Fit::new(&upstream, &layers.config)?;
        let state = State::new(layers, upstream, old.map(|old| &old.state))?;
        let kept = old.filter(|old| old.state.is_probed_as(&state));
        let probe = match kept {
            Some(old) => old.probe.clone(),
            None => Probe::new(&state, layers, &fit)?.map(Arc::new),
        };
        Ok(Self(Arc::new(Inner {
            state,
            fit: Arc::new(fit),
            probe,
        })))
    }

    pub(super) fn state(&self) -> &State {
        &self.0.state
    }

    pub(super) fn fit(&self) -> Arc<Fit> {
        Arc::clone(&self.0.fit)
    }

    pub(super) fn probe(&self) -> Option<&Arc<Probe>> {
        self.0.probe.as_ref()
    }

    pub(super) fn has_larger_context_than(&self, other: &Self) -> bool {
        let takes = |member: &Self| member.state().upstream.takes();
        takes(self).larger_context_than(&takes(other))
    }

    /// Its name in records.
    pub fn name(&self) -> &str {
        &self.state().upstream.name
    }

    /// The model that is asked for.
    pub fn model(&self) -> &str {
        &self.state().upstream.target.model
    }

    /// Whose answers they are.
    pub fn vendor(&self) -> Vendor {
        self.state().upstream.target.vendor
    }

    /// The host of its address, and the port if it names one; no path and no query.
    pub fn endpoint(&self) -> String {
        let uri = self.state().upstream.target.url.parse::<Uri>();
        let authority = uri.ok().and_then(|uri| uri.into_parts().authority);
        authority.map_or_else(String::new, |authority| {
            let port = authority.port_u16();
            let port = port.map_or_else(String::new, |port| format!(":{port}"));
            format!("{}{port}", authority.host())
        })
    }

    /// Whether it is asked at all. Else it drains.
    pub fn is_enabled(&self) -> bool {
        self.state().upstream.target.enabled
    }

    /// Its breaker, if it has one. One that drains has none: nobody finds out whether it is back.
    pub fn breaker(&self) -> Option<&Breaker> {
        self.state().breaker.as_ref()
    }

    /// How long a hint of the server still holds all calls to it; `None` if they are not held.
    pub fn retry_in(&self) -> Option<Duration> {
        self.state().hold.as_ref()?.retry_in(self.name())
    }

    /// Calls under way there now, to the last bytes of their answers. One that drains has some
    /// until the last of them ends.
    pub fn in_flight(&self) -> usize {
        self.state().permits.in_flight()
    }

    /// The most calls under way there at one time.
    pub fn most_in_flight(&self) -> usize {
        self.state().permits.limit()
    }

    /// Whether a call could be served there now: enabled, breaker not refusing, not held.
    pub fn is_usable(&self) -> bool {
        let refuses = self.breaker().is_some_and(Breaker::is_refusing);
        self.is_enabled() && !refuses && self.retry_in().is_none()
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("name", &self.name())
            .field("model", &self.model())
            .field("enabled", &self.is_enabled())
            .field("breaker", &self.breaker())
            .finish_non_exhaustive()
    }
}
