use std::{
    fmt,
    hash::Hash,
    mem,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tower_service::Service;
use tower_spillway_core::{
    BoxError, Carry, Cause, Http, Ledger, Read, Refusal, Refused, Verdict, clock, keyed::Home,
};

use super::{
    cell::Hold,
    future::{HeldFuture, Place},
    key::{ByTarget, HoldKey, KeyOf},
    shared::{SharedHold, Slot},
};
use crate::{RetryAfter, metrics, policy::LEAST};

/// Refuses calls while the server asked everybody to wait, and hears when it does. It is below the
/// retrying service of [`RetryAfterLayer`](crate::RetryAfterLayer), which waits and comes back. See
/// [`hold`](super).
///
/// # Clone
///
/// Clones share the holds. Readiness is not cloned.
pub struct Held<S, A = Http, K = HoldKey, X = ByTarget> {
    inner: S,
    settings: Arc<Settings<A, K, X>>,
    readiness: Readiness,
}

/// What the clones of a service share.
pub(crate) struct Settings<A, K, X> {
    pub(crate) adapter: A,
    pub(crate) hold: SharedHold<K>,
    pub(crate) by: X,
    pub(crate) policy: RetryAfter,
    pub(crate) home: Home<K, Slot>,
}

/// What `poll_ready` answered last.
#[derive(Default)]
enum Readiness {
    /// Whatever the inner service said.
    #[default]
    Inner,
    /// Ready, without asking the inner service. It must not be called then, even if the hold has
    /// ended since.
    Refusing(Slot),
}

impl<S, A, K, X> Held<S, A, K, X> {
    pub(crate) fn new(inner: S, settings: Settings<A, K, X>) -> Self {
        Self {
            inner,
            settings: Arc::new(settings),
            readiness: Readiness::Inner,
        }
    }

    /// The wrapped service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The wrapped service, to change.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The wrapped service alone.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<A, K, X> Settings<A, K, X> {
    /// The error of a held call, and the advice to come back.
    fn refuse(&self, slot: &Slot, hold: Option<Hold>, ledger: Option<&Ledger>) -> BoxError {
        let hold = hold.unwrap_or(Hold { left: 0, spread: 0 });
        let left = Duration::from_micros(hold.left).max(LEAST);
        if let Some(ledger) = ledger {
            ledger.advise(if left > ledger.longest_wait() {
                Verdict::Stop(Cause::HintTooLong)
            } else {
                let spread = Duration::from_millis(hold.spread);
                Verdict::Retry {
                    after: left.saturating_add(self.policy.spread(spread)),
                }
            });
        }
        metrics::refused(slot.target());
        tracing::debug!(
            spillway.target = slot.target(),
            spillway.refusal = Refusal::Held.as_str(),
            spillway.retry_in_ms = clock::millis(left),
            "call refused"
        );
        Refused::new(Refusal::Held).retry_in(Some(left)).into()
    }
}

impl<S, A, K, X, Req> Service<Req> for Held<S, A, K, X>
where
    S: Service<Req> + Clone,
    S::Error: Into<BoxError>,
    A: Carry<Req> + Read<S::Response>,
    X: KeyOf<Req, Key = K>,
    K: Eq + Hash + Clone + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = HeldFuture<S::Future, A, K, X>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        let Settings { hold, home, .. } = &*self.settings;
        if let Some(slot) = home.expected() {
            if hold.look(slot).is_some() {
                self.readiness = Readiness::Refusing(slot.clone());
                return Poll::Ready(Ok(()));
            }
        }
        // A refusal remembered from before is over: the inner service answers for itself.
        self.readiness = Readiness::Inner;
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Req) -> Self::Future {
        let settings = Arc::clone(&self.settings);
        let ledger = settings.adapter.ledger_mut(&mut request).map(|l| &*l);
        let ledger = ledger.cloned();
        let key = settings.by.key(&request, ledger.as_ref());
        let hold = &settings.hold;
        let slot = if X::OF_SERVICE {
            Some(settings.home.get(&key, || hold.slot(&key)))
        } else if hold.anybody_held() {
            hold.find(&key)
        } else {
            None
        };
        let held = slot.as_ref().and_then(|slot| hold.look(slot));
        let refusing = match mem::take(&mut self.readiness) {
            Readiness::Refusing(refusing) => Some(refusing),
            Readiness::Inner => None,
        };
        if let Some(slot) = &slot {
            if held.is_some() || refusing.as_ref().is_some_and(|r| r.same(slot)) {
                // What the inner service reserved when it was polled is given back: the call may
                // come again in minutes.
                self.inner = self.inner.clone();
                return HeldFuture::not_sent(settings.refuse(slot, held, ledger.as_ref()));
            }
        }
        if refusing.is_some() {
            // The first call of this service for another target: what was remembered is not about
            // it. If the inner service is not ready at once there is nobody to wait.
            let mut nobody = Context::from_waker(Waker::noop());
            match self.inner.poll_ready(&mut nobody) {
                Poll::Ready(Ok(())) => (),
                Poll::Ready(Err(error)) => return HeldFuture::not_sent(error.into()),
                Poll::Pending => {
                    return HeldFuture::not_sent(Refused::new(Refusal::NotReady).into());
                }
            }
        }
        let place = match slot {
            Some(slot) => Place::Slot(slot),
            None => Place::Key(key),
        };
        HeldFuture::calling(self.inner.call(request), settings, place)
    }
}

impl<S: Clone, A, K, X> Clone for Held<S, A, K, X> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            settings: Arc::clone(&self.settings),
            readiness: Readiness::Inner,
        }
    }
}

impl<S: fmt::Debug, A, K, X> fmt::Debug for Held<S, A, K, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held")
            .field("inner", &self.inner)
            .field("hold", &self.settings.hold)
            .finish_non_exhaustive()
    }
}
