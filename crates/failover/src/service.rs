//! The service.

use std::{
    fmt, mem,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tower_service::Service;
use tower_spillway_core::{BoxError, Carry, Http, InvalidConfig, Read, Resend};

use crate::{fleet::Fleet, future::ResponseFuture, journey::Journey, target::Target};

/// Sends a call to the first target that can serve it. See the [crate docs](crate).
pub struct FailoverService<S, Req, A = Http> {
    primary: S,
    readiness: Readiness,
    fleet: Arc<Fleet<S, Req>>,
    ready_within: Duration,
    adapter: A,
}

/// What the last poll of the primary gave.
pub(crate) enum Readiness {
    Unknown,
    Ready,
    Failed,
}

const READY_WITHIN: Duration = Duration::from_secs(1);

impl<S: Clone, Req> FailoverService<S, Req> {
    /// Targets in the order in which they are asked.
    ///
    /// # Errors
    ///
    /// At least one target; each name once; `sends_while_others` at least 1.
    pub fn new(targets: impl IntoIterator<Item = Target<S, Req>>) -> Result<Self, InvalidConfig> {
        let fleet = Fleet::new(targets)?;
        let primary = fleet
            .service(0)
            .ok_or(InvalidConfig::new("targets", "at least one"))?;
        Ok(Self {
            primary,
            readiness: Readiness::Unknown,
            fleet: Arc::new(fleet),
            ready_within: READY_WITHIN,
            adapter: Http::default(),
        })
    }
}

impl<S: Clone, Req, A> FailoverService<S, Req, A> {
    /// How long a target may take to become ready before the call goes to the next, at most until
    /// the deadline. 1 s by default.
    #[must_use]
    pub fn ready_within(mut self, limit: Duration) -> Self {
        self.ready_within = limit;
        self
    }

    /// Sees requests and responses through another adapter.
    #[must_use]
    pub fn adapter<B>(self, adapter: B) -> FailoverService<S, Req, B> {
        FailoverService {
            primary: self.primary,
            readiness: self.readiness,
            fleet: self.fleet,
            ready_within: self.ready_within,
            adapter,
        }
    }

    /// The service of the first target.
    pub fn get_ref(&self) -> &S {
        &self.primary
    }
}

impl<S: Clone, Req, A: Clone> Clone for FailoverService<S, Req, A> {
    fn clone(&self) -> Self {
        Self {
            primary: self.primary.clone(),
            // Readiness belongs to an instance.
            readiness: Readiness::Unknown,
            fleet: Arc::clone(&self.fleet),
            ready_within: self.ready_within,
            adapter: self.adapter.clone(),
        }
    }
}

impl<S, Req, A> Service<Req> for FailoverService<S, Req, A>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    A: Resend<Req> + Carry<Req> + Read<S::Response> + Clone,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S, Req, A>;

    /// Always ready: a primary that is not must not keep the call from the next target. It is
    /// polled here all the same, so that one that is ready is called at once.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if matches!(self.readiness, Readiness::Unknown) {
            self.readiness = match self.primary.poll_ready(cx) {
                Poll::Ready(Ok(())) => Readiness::Ready,
                Poll::Ready(Err(_)) => Readiness::Failed,
                Poll::Pending => Readiness::Unknown,
            };
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let (journey, request) =
            Journey::new(Arc::clone(&self.fleet), self.adapter.clone(), request);
        let readiness = mem::replace(&mut self.readiness, Readiness::Unknown);
        if matches!(readiness, Readiness::Ready) {
            return ResponseFuture::at_once(journey, request, &mut self.primary, self.ready_within);
        }
        let clone = match &readiness {
            // A service that failed is done for; a fresh one may do better.
            Readiness::Failed => self.fleet.service(0),
            _ => None,
        };
        let clone = clone.unwrap_or_else(|| self.primary.clone());
        let primary = mem::replace(&mut self.primary, clone);
        ResponseFuture::start(journey, request, primary, readiness, self.ready_within)
    }
}

impl<S: fmt::Debug, Req, A> fmt::Debug for FailoverService<S, Req, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.fleet.specs.iter().map(|s| &s.plan.target).collect();
        f.debug_struct("FailoverService")
            .field("targets", &names)
            .field("primary", &self.primary)
            .finish_non_exhaustive()
    }
}
