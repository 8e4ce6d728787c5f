//! Probes that no user waits for.

use std::{
    error::Error,
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower_service::Service;
use tower_spillway_core::{
    BoxError, Class, Http, InvalidConfig, Read, Reading, TimeLimit, TimedOut, clock,
};

use crate::{
    breaker::{Breaker, WeakBreaker},
    config::ensure,
    event::Events,
    permit::Guard,
};

/// The longest interval, as a multiple of the first: an outage ends unseen for at most so long.
const LONGEST: u32 = 3;

/// A probe fails that is not answered within.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Made by [`Breaker::probe_with`].
pub(crate) struct Probing<S, Req, Res, A> {
    breaker: WeakBreaker,
    attached: Option<Attached>,
    events: Events,
    service: S,
    request: Req,
    adapter: A,
    first: Duration,
    longest: Duration,
    interval: Duration,
    time_limit: Duration,
    on_answer: Option<OnAnswer<Res>>,
}

type OnAnswer<Res> = Box<dyn FnMut(&Res) + Send>;

pin_project! {
    /// Sends probes to a target that is half-open, so that no user waits for one: a future to
    /// spawn. See [`Breaker::probe_with`].
    ///
    /// It ends when nobody else holds the breaker. Dropped, it gives half-open back to the probes
    /// of users.
    #[must_use = "it does nothing unless it is spawned or polled"]
    pub struct Prober<S, Req, A = Http>
    where
        S: Service<Req>,
    {
        probing: Probing<S, Req, S::Response, A>,
        #[pin]
        state: State<S::Future>,
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        /// Asks the breaker what to do.
        Looking,
        /// Nothing is to be found out until something happens to the breaker.
        Resting,
        Sleeping { #[pin] sleep: Sleep },
        Readying { guard: Option<Guard<Breaker>>, #[pin] limit: Sleep },
        Calling { #[pin] call: F, guard: Option<Guard<Breaker>>, #[pin] limit: Sleep },
        Done,
    }
}

/// The breaker knows of a prober.
struct Attached(WeakBreaker);

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(breaker) = self.0.upgrade() {
            breaker.detach_prober();
        }
    }
}

impl Breaker {
    /// Probes without users: a future that sends `request` through `service` while the breaker is
    /// half-open. `service` is the target itself, not the stack above the breaker; a request of one
    /// token is enough.
    ///
    /// From its first poll on half-open admits no user's call ([`Refusal::ProbesBusy`], to come
    /// back when the next probe is due). Once the open time is over a probe is sent each
    /// `interval` (2 s is a good value), counted from one sending to the next; while probes fail the
    /// interval doubles up to three times the first, and at the first good one it is the first again. It closes when four of
    /// five of the last 6 probes were good, and the last three; after each trip within ten minutes
    /// of the one before twice as many are asked for, 40 at most: a target that fails half of its
    /// calls does not close by luck. Failed probes do not reopen it; a target that says that it is
    /// down is held as always.
    ///
    /// Probes are in no count of calls: they are counted apart ([`Snapshot::own_probes`]), and
    /// [`Prober::on_answer`] sees each answer, to price it.
    ///
    /// ```
    /// use std::time::Duration;
    /// use http::{Request, Response};
    /// use tower_circuit_breaker::{Breaker, BreakerConfig, State};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let breaker = Breaker::new("opus", BreakerConfig::new())?;
    /// let target = tower::service_fn(|_: Request<String>| async {
    ///     Ok::<_, std::io::Error>(Response::new(String::new()))
    /// });
    /// let probe = Request::new(String::from("ping"));
    /// tokio::spawn(breaker.probe_with(target, probe, Duration::from_secs(2))?);
    ///
    /// breaker.force_open_for(Duration::from_secs(10));
    /// tokio::time::sleep(Duration::from_secs(15)).await;
    /// assert!(breaker.permit().is_err());
    /// tokio::time::sleep(Duration::from_secs(6)).await;
    /// assert_eq!(breaker.state(), State::Closed);
    /// assert_eq!(breaker.snapshot().own_probes, 6);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] if the interval is zero.
    ///
    /// [`Refusal::ProbesBusy`]: crate::Refusal::ProbesBusy
    /// [`Snapshot::own_probes`]: crate::Snapshot::own_probes
    pub fn probe_with<S, Req>(
        &self,
        service: S,
        request: Req,
        interval: Duration,
    ) -> Result<Prober<S, Req>, InvalidConfig>
    where
        S: Service<Req>,
    {
        ensure(!interval.is_zero(), "interval", "more than 0")?;
        let probing = Probing {
            breaker: self.downgrade(),
            attached: None,
            events: self.events(1),
            service,
            request,
            adapter: Http::default(),
            first: interval,
            longest: interval.saturating_mul(LONGEST),
            interval,
            time_limit: TIME_LIMIT,
            on_answer: None,
        };
        Ok(Prober {
            probing,
            state: State::Looking,
        })
    }
}

impl<S, Req, A> Prober<S, Req, A>
where
    S: Service<Req>,
{
    /// Reads answers through another adapter. To be set before it is polled.
    pub fn adapter<B>(self, adapter: B) -> Prober<S, Req, B> {
        let Probing {
            breaker,
            attached,
            events,
            service,
            request,
            adapter: _,
            first,
            longest,
            interval,
            time_limit,
            on_answer,
        } = self.probing;
        Prober {
            probing: Probing {
                breaker,
                attached,
                events,
                service,
                request,
                adapter,
                first,
                longest,
                interval,
                time_limit,
                on_answer,
            },
            state: State::Looking,
        }
    }

    /// The interval grows to this at most (three times the first, unless set); never below the first.
    pub fn longest_interval(mut self, longest: Duration) -> Self {
        self.probing.longest = longest.max(self.probing.first);
        self
    }

    /// A probe fails that is not answered within (10 s, unless set).
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.probing.time_limit = limit;
        self
    }

    /// Calls `seen` with the answer of each probe, for instance to add up what it cost.
    pub fn on_answer(mut self, seen: impl FnMut(&S::Response) + Send + 'static) -> Self {
        self.probing.on_answer = Some(Box::new(seen));
        self
    }
}

impl<S, Req, Res, A> Probing<S, Req, Res, A>
where
    A: Read<Res>,
{
    /// A probe ended; what to do next.
    fn ended<F>(&mut self, guard: Option<Guard<Breaker>>, out: &Result<Res, BoxError>) -> State<F> {
        let (Some(guard), Some(breaker)) = (guard, self.breaker.upgrade()) else {
            return State::Done;
        };
        if let (Ok(answer), Some(seen)) = (out, &mut self.on_answer) {
            seen(answer);
        }
        let view = out.as_ref().map_err(|e| &**e as &(dyn Error + 'static));
        let reading = self.adapter.read(view);
        let good = self.is_good(&breaker, &guard, &reading);
        self.interval = if good {
            self.first
        } else {
            self.interval.saturating_mul(2).min(self.longest)
        };
        // From one sending to the next, so that a slow target is found to be back as soon.
        let took = guard.age(clock::now()).unwrap_or_default();
        let rest = self.interval.saturating_sub(took);
        guard.hear(&reading, None);
        breaker.probed(good, rest);
        State::Sleeping { sleep: sleep(rest) }
    }

    fn is_good(&self, breaker: &Breaker, guard: &Guard<Breaker>, reading: &Reading) -> bool {
        let age = guard.age(clock::now());
        reading.class() == Class::Success && !age.is_some_and(|age| breaker.is_slow(age))
    }
}

impl<S, Req, Res, A> Probing<S, Req, Res, A> {
    /// Asks the breaker; `None` if it is gone.
    fn look<F>(&mut self) -> Option<State<F>> {
        let breaker = self.breaker.upgrade()?;
        if self.attached.is_none() {
            breaker.attach_prober();
            self.attached = Some(Attached(self.breaker.clone()));
        }
        Some(match breaker.order() {
            Ok(Some(admitted)) => State::Readying {
                guard: Some(Guard::new(breaker, None, admitted, None)),
                limit: sleep(self.time_limit),
            },
            Ok(None) => State::Resting,
            Err(wait) => State::Sleeping { sleep: sleep(wait) },
        })
    }
}

impl<S, Req, A> Future for Prober<S, Req, A>
where
    S: Service<Req>,
    S::Error: Into<BoxError>,
    Req: Clone,
    A: Read<S::Response>,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        loop {
            let probing = &mut *this.probing;
            let next = match this.state.as_mut().project() {
                StateProj::Looking => probing.look().unwrap_or(State::Done),
                StateProj::Resting => match ready!(probing.events.poll_next(cx)) {
                    Some(_) => {
                        probing.interval = probing.first;
                        State::Looking
                    }
                    None => State::Done,
                },
                StateProj::Sleeping { sleep } => {
                    ready!(sleep.poll(cx));
                    State::Looking
                }
                StateProj::Readying { guard, limit } => match probing.service.poll_ready(cx) {
                    Poll::Ready(Ok(())) => {
                        let request = probing.request.clone();
                        let service = &mut probing.service;
                        let call = match guard.as_mut() {
                            Some(guard) => guard.run(|| service.call(request)),
                            None => service.call(request),
                        };
                        State::Calling {
                            call,
                            guard: guard.take(),
                            limit: sleep(probing.time_limit),
                        }
                    }
                    Poll::Ready(Err(error)) => probing.ended(guard.take(), &Err(error.into())),
                    Poll::Pending => {
                        ready!(limit.poll(cx));
                        let error = TimedOut::new(TimeLimit::Head, probing.time_limit);
                        probing.ended(guard.take(), &Err(error.into()))
                    }
                },
                StateProj::Calling { call, guard, limit } => {
                    let polled = match guard.as_mut() {
                        Some(guard) => guard.run(|| call.poll(cx)),
                        None => call.poll(cx),
                    };
                    match polled {
                        Poll::Ready(out) => probing.ended(guard.take(), &out.map_err(Into::into)),
                        Poll::Pending => {
                            ready!(limit.poll(cx));
                            let error = TimedOut::new(TimeLimit::Head, probing.time_limit);
                            probing.ended(guard.take(), &Err(error.into()))
                        }
                    }
                }
                StateProj::Done => {
                    probing.attached = None;
                    return Poll::Ready(());
                }
            };
            this.state.set(next);
        }
    }
}

impl<S, Req, A> fmt::Debug for Prober<S, Req, A>
where
    S: Service<Req>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prober")
            .field("interval", &self.probing.interval)
            .field("longest_interval", &self.probing.longest)
            .field("time_limit", &self.probing.time_limit)
            .finish_non_exhaustive()
    }
}
