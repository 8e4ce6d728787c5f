//! A service that answers as written.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use pin_project_lite::pin_project;
use tokio::time::{Instant, Sleep, sleep};
use tower_service::Service;

use crate::BoxError;

type Make<Res> = dyn Fn() -> Result<Res, BoxError> + Send + Sync;
type Choose<Req, Res> = dyn Fn(usize, &Req) -> Step<Res> + Send + Sync;
type See<Req> = dyn Fn(&Req) + Send + Sync;

/// What a [`Script`] does with one call.
pub struct Step<Res> {
    /// `None` hangs for ever.
    make: Option<Arc<Make<Res>>>,
    delay: Duration,
}

impl<Res> Step<Res> {
    /// Answers with clones of `response`.
    pub fn answer(response: Res) -> Self
    where
        Res: Clone + Send + Sync + 'static,
    {
        Self::answer_with(move || response.clone())
    }

    /// Answers with a response made anew for each call.
    pub fn answer_with(make: impl Fn() -> Res + Send + Sync + 'static) -> Self {
        Self {
            make: Some(Arc::new(move || Ok(make()))),
            delay: Duration::ZERO,
        }
    }

    /// Fails with an error made anew for each call.
    pub fn fail<E: Into<BoxError>>(make: impl Fn() -> E + Send + Sync + 'static) -> Self {
        Self {
            make: Some(Arc::new(move || Err(make().into()))),
            delay: Duration::ZERO,
        }
    }

    /// Never answers.
    pub fn hang() -> Self {
        Self {
            make: None,
            delay: Duration::ZERO,
        }
    }

    /// Takes so long on tokio's clock. Without it the step is over at the first poll.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

impl<Res> Clone for Step<Res> {
    fn clone(&self) -> Self {
        Self {
            make: self.make.clone(),
            delay: self.delay,
        }
    }
}

impl<Res> fmt::Debug for Step<Res> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step")
            .field("hangs", &self.make.is_none())
            .field("delay", &self.delay)
            .finish()
    }
}

/// A service over any request and response that does what was written, and keeps a log.
///
/// It is always ready; its error is [`BoxError`]. It reads tokio's clock without counting in
/// [`clock`](super::clock).
///
/// # Clone
///
/// Clones share the place in the script and the log. What [`inspect`](Self::inspect) and
/// [`recording`](Self::recording) set holds for the clones made afterwards.
pub struct Script<Req, Res> {
    choose: Arc<Choose<Req, Res>>,
    see: Option<Arc<See<Req>>>,
    record: Option<fn(&Req) -> Req>,
    log: Arc<Log<Req>>,
    counts: Arc<Counts>,
}

struct Log<Req> {
    created: Instant,
    entries: Mutex<Entries<Req>>,
}

struct Entries<Req> {
    times: Vec<Duration>,
    requests: Vec<Req>,
}

#[derive(Debug, Default)]
struct Counts {
    in_flight: AtomicUsize,
    dropped: AtomicUsize,
}

impl<Req, Res> Script<Req, Res> {
    /// Steps in order; the last one repeats. Without any step every call fails.
    pub fn new(steps: impl IntoIterator<Item = Step<Res>>) -> Self
    where
        Res: 'static,
    {
        let steps: Vec<_> = steps.into_iter().collect();
        Self::from_fn(move |n, _| {
            let step = steps.get(n.saturating_sub(1)).or(steps.last());
            step.cloned()
                .unwrap_or_else(|| Step::fail(|| "the script has no step"))
        })
    }

    /// The same step for every call.
    pub fn always(step: Step<Res>) -> Self
    where
        Res: 'static,
    {
        Self::new([step])
    }

    /// A step for the `n`-th call (from 1, over all clones) and its request.
    pub fn from_fn(choose: impl Fn(usize, &Req) -> Step<Res> + Send + Sync + 'static) -> Self {
        Self {
            choose: Arc::new(choose),
            see: None,
            record: None,
            log: Arc::new(Log {
                created: Instant::now(),
                entries: Mutex::new(Entries {
                    times: Vec::new(),
                    requests: Vec::new(),
                }),
            }),
            counts: Arc::default(),
        }
    }

    /// Shows each request to `see` before its step is chosen.
    #[must_use]
    pub fn inspect(mut self, see: impl Fn(&Req) + Send + Sync + 'static) -> Self {
        self.see = Some(Arc::new(see));
        self
    }

    /// Keeps a clone of each request for [`requests`](Self::requests).
    #[must_use]
    pub fn recording(mut self) -> Self
    where
        Req: Clone,
    {
        self.record = Some(Req::clone);
        self
    }

    /// How many calls were made.
    pub fn calls(&self) -> usize {
        self.entries(|e| e.times.len())
    }

    /// When each call was made, from the creation of the script.
    pub fn times(&self) -> Vec<Duration> {
        self.entries(|e| e.times.clone())
    }

    /// The requests so far, if [`recording`](Self::recording).
    pub fn requests(&self) -> Vec<Req>
    where
        Req: Clone,
    {
        self.entries(|e| e.requests.clone())
    }

    /// Calls that have neither completed nor been dropped.
    pub fn in_flight(&self) -> usize {
        self.counts.in_flight.load(Ordering::SeqCst)
    }

    /// Calls that were dropped before they completed.
    pub fn dropped(&self) -> usize {
        self.counts.dropped.load(Ordering::SeqCst)
    }

    fn entries<T>(&self, f: impl FnOnce(&mut Entries<Req>) -> T) -> T {
        f(&mut self
            .log
            .entries
            .lock()
            .unwrap_or_else(PoisonError::into_inner))
    }
}

impl<Req, Res> Service<Req> for Script<Req, Res> {
    type Response = Res;
    type Error = BoxError;
    type Future = ScriptFuture<Res>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let at = self.log.created.elapsed();
        let kept = self.record.map(|record| record(&request));
        let n = self.entries(|e| {
            e.times.push(at);
            e.requests.extend(kept);
            e.times.len()
        });
        if let Some(see) = &self.see {
            see(&request);
        }
        // Outside the lock: it is the test's own code, and may ask this script.
        let step = (self.choose)(n, &request);
        ScriptFuture {
            sleep: (!step.delay.is_zero()).then(|| sleep(step.delay)),
            make: step.make,
            open: Open::new(&self.counts),
        }
    }
}

impl<Req, Res> Clone for Script<Req, Res> {
    fn clone(&self) -> Self {
        Self {
            choose: Arc::clone(&self.choose),
            see: self.see.clone(),
            record: self.record,
            log: Arc::clone(&self.log),
            counts: Arc::clone(&self.counts),
        }
    }
}

impl<Req, Res> fmt::Debug for Script<Req, Res> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("times", &self.times())
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of a [`Script`].
    pub struct ScriptFuture<Res> {
        make: Option<Arc<Make<Res>>>,
        #[pin]
        sleep: Option<Sleep>,
        open: Open,
    }
}

impl<Res> Future for ScriptFuture<Res> {
    type Output = Result<Res, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some(sleep) = this.sleep.as_mut().as_pin_mut() {
            ready!(sleep.poll(cx));
            this.sleep.set(None);
        }
        match this.make {
            Some(make) => {
                let out = make();
                this.open.complete();
                Poll::Ready(out)
            }
            None => Poll::Pending,
        }
    }
}

impl<Res> fmt::Debug for ScriptFuture<Res> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptFuture")
            .field("hangs", &self.make.is_none())
            .finish_non_exhaustive()
    }
}

/// A call that is out.
struct Open(Option<Arc<Counts>>);

impl Open {
    fn new(counts: &Arc<Counts>) -> Self {
        counts.in_flight.fetch_add(1, Ordering::SeqCst);
        Self(Some(Arc::clone(counts)))
    }

    fn complete(&mut self) {
        if let Some(counts) = self.0.take() {
            counts.in_flight.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(counts) = self.0.take() {
            counts.in_flight.fetch_sub(1, Ordering::SeqCst);
            counts.dropped.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tower::ServiceExt;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn steps_run_in_order_and_the_last_repeats() {
        let script = Script::new([
            Step::answer(1),
            Step::fail(|| "no").after(SECOND),
            Step::answer(3).after(SECOND),
        ])
        .recording();
        for (request, wanted) in [("a", Some(1)), ("b", None), ("c", Some(3)), ("d", Some(3))] {
            let out = script.clone().oneshot(request).await;
            assert_eq!(out.ok(), wanted);
        }
        assert_eq!(
            script.times(),
            [Duration::ZERO, Duration::ZERO, SECOND, 2 * SECOND]
        );
        assert_eq!(script.requests(), ["a", "b", "c", "d"]);
    }

    #[tokio::test(start_paused = true)]
    async fn open_and_dropped_calls_are_told_apart() {
        let script = Script::<(), ()>::always(Step::hang());
        let call = tokio::time::timeout(SECOND, script.clone().oneshot(()));
        let mut call = std::pin::pin!(call);
        assert!(std::future::poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_pending())).await);
        assert_eq!((script.in_flight(), script.dropped()), (1, 0));
        assert!(call.await.is_err());
        // The timeout's future is still alive; the call inside it is not over.
        assert_eq!((script.calls(), script.in_flight()), (1, 1));
        drop(script.clone().call(()));
        assert_eq!((script.in_flight(), script.dropped()), (1, 1));
    }

    #[tokio::test]
    async fn a_closure_sees_the_number_and_the_request() {
        let script = Script::from_fn(|n, request: &usize| Step::answer(n * 10 + request));
        assert_eq!(script.clone().oneshot(5).await.unwrap(), 15);
        assert_eq!(script.clone().oneshot(6).await.unwrap(), 26);
    }
}
