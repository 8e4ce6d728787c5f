use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

use tower_layer::Layer;

use super::{
    permits::{Permits, check},
    service::{InFlight, Settings},
};
use crate::{
    Http, InvalidConfig, TargetName,
    keyed::{Home, States},
};

/// A permit is kept to the end of the response body.
#[derive(Clone, Copy, Debug)]
pub struct ToBodyEnd;

/// A permit is kept to the response.
#[derive(Clone, Copy, Debug)]
pub struct ToResponse;

/// So many targets have permits of their own; the others share some.
const MOST_TARGETS: usize = 1024;
const READY_WITHIN: Duration = Duration::from_secs(1);

/// Bounds the requests in flight at each target. See the [module docs](super).
pub struct InFlightLayer<A = Http, To = ToBodyEnd> {
    adapter: A,
    source: Source,
    ready_within: Duration,
    to: PhantomData<fn() -> To>,
}

/// Where the permits of a layer are.
#[derive(Clone, Debug)]
pub(super) enum Source {
    ByTarget {
        limit: usize,
        states: Arc<States<Option<TargetName>, Permits>>,
    },
    Shared(Permits),
}

impl Source {
    pub(super) fn permits(&self, target: &Option<TargetName>) -> Permits {
        match self {
            Self::ByTarget { limit, states } => {
                states.get_or_make(target, || Permits::checked(*limit), Permits::is_idle)
            }
            Self::Shared(permits) => permits.clone(),
        }
    }
}

impl InFlightLayer {
    /// So many requests in flight at each target.
    ///
    /// # Errors
    ///
    /// At least 1, at most `usize::MAX / 8`.
    pub fn new(limit: usize) -> Result<Self, InvalidConfig> {
        check(limit)?;
        let states = Arc::new(States::new(MOST_TARGETS));
        Ok(Self::from_source(Source::ByTarget { limit, states }))
    }

    /// One set of permits for everything that passes, whatever its target.
    pub fn with_permits(permits: Permits) -> Self {
        Self::from_source(Source::Shared(permits))
    }

    fn from_source(source: Source) -> Self {
        Self {
            adapter: Http::default(),
            source,
            ready_within: READY_WITHIN,
            to: PhantomData,
        }
    }
}

impl<A> InFlightLayer<A, ToBodyEnd> {
    /// Gives a permit back with the response, and leaves the body alone: for responses that are not
    /// `http`.
    #[must_use]
    pub fn until_response(self) -> InFlightLayer<A, ToResponse> {
        InFlightLayer {
            adapter: self.adapter,
            source: self.source,
            ready_within: self.ready_within,
            to: PhantomData,
        }
    }
}

impl<A, To> InFlightLayer<A, To> {
    /// The longest wait for a permit, and then for the service below to become ready again; at most
    /// until the call's deadline. 1 s by default. With zero nobody waits.
    #[must_use]
    pub fn ready_within(mut self, limit: Duration) -> Self {
        self.ready_within = limit;
        self
    }

    /// Sees requests through another adapter.
    #[must_use]
    pub fn adapter<B>(self, adapter: B) -> InFlightLayer<B, To> {
        InFlightLayer {
            adapter,
            source: self.source,
            ready_within: self.ready_within,
            to: PhantomData,
        }
    }

    /// The permits of a target, which are made where there are none yet.
    pub fn permits(&self, target: impl Into<TargetName>) -> Permits {
        self.source.permits(&Some(target.into()))
    }

    /// The permits of calls that name no target: all calls, where there is no failover above.
    pub fn unnamed_permits(&self) -> Permits {
        self.source.permits(&None)
    }
}

impl<A: Clone, To> Clone for InFlightLayer<A, To> {
    fn clone(&self) -> Self {
        Self {
            adapter: self.adapter.clone(),
            source: self.source.clone(),
            ready_within: self.ready_within,
            to: PhantomData,
        }
    }
}

impl<A, To> fmt::Debug for InFlightLayer<A, To> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFlightLayer")
            .field("source", &self.source)
            .field("ready_within", &self.ready_within)
            .finish_non_exhaustive()
    }
}

impl<S, A: Clone, To> Layer<S> for InFlightLayer<A, To> {
    type Service = InFlight<S, A, To>;

    fn layer(&self, inner: S) -> Self::Service {
        InFlight::new(
            inner,
            Settings {
                adapter: self.adapter.clone(),
                source: self.source.clone(),
                ready_within: self.ready_within,
                home: Home::new(),
            },
        )
    }
}
