//! Requests, retries, upstreams and targets of these tests.

use std::{
    error::Error,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tower::Service;
use tower_retry_budget::{RatioBudget, RatioConfig};
use tower_spillway_core::{
    BoxError, Carried, Class, Engine, Failure, History, Ledger, Limits, Outcome, Plain, Policy,
    Read, Reading, RetryLayer, Verdict, clock,
    ledger::LegPlan,
    testing::script::{Script, Step},
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) type Request = Carried<u8>;
pub(crate) type Upstream = Script<Request, u16>;

/// Statuses: below 400 is a success.
pub(crate) fn classify(result: Result<&u16, Failure<'_>>) -> Reading {
    Reading::new(match result {
        Ok(..400) => Class::Success,
        _ => Class::Transient,
    })
}

pub(crate) type Adapter = Plain<fn(Result<&u16, Failure<'_>>) -> Reading>;

pub(crate) fn adapter() -> Adapter {
    Plain(classify)
}

/// Waits the same time before each send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Every(pub(crate) Duration);

impl<Res> Policy<Res> for Every {
    fn judge(&self, _past: &History, _outcome: &Outcome<'_, Res>) -> Verdict {
        Verdict::Retry { after: self.0 }
    }
}

/// Retries each second, so many sends.
pub(crate) fn retries(sends: u32) -> RetryLayer<Every, Adapter> {
    let engine = Engine::new(Every(SECOND), adapter());
    RetryLayer::from_engine(engine.limits(Limits {
        max_attempts: Some(sends),
        ..Limits::default()
    }))
}

pub(crate) fn up() -> Upstream {
    Script::always(Step::answer(200))
}

pub(crate) fn down() -> Upstream {
    Script::always(Step::answer(503))
}

/// A budget of so many retries, and nothing for first attempts.
pub(crate) fn reserve(retries: u32) -> RatioBudget {
    let config = RatioConfig::new().ratio(0.0).reserve(retries);
    config.build().unwrap()
}

/// A request with the caller's own ledger.
pub(crate) fn request() -> (Request, Ledger) {
    let ledger = Ledger::new();
    (Carried::new(0).with_ledger(ledger.clone()), ledger)
}

/// Each target once, in order, until one succeeds: as little of a failover as these tests need.
#[derive(Clone)]
pub(crate) struct Targets<S>(pub(crate) Vec<(&'static str, S)>);

impl<S> Service<Request> for Targets<S>
where
    S: Service<Request, Response = u16, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = u16;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<u16, BoxError>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let ledger = Ledger::enter(&adapter(), &mut request);
        let targets = self.0.clone();
        Box::pin(async move {
            let mut out = Err("no target".into());
            for (name, mut service) in targets {
                let leg = ledger.open_leg(LegPlan::new(name.into()), clock::now());
                let request = Carried::new(*request.get_ref()).with_ledger(leg.clone());
                std::future::poll_fn(|cx| service.poll_ready(cx)).await?;
                out = service.call(request).await;
                let view = out.as_ref().map_err(|e| &**e as &(dyn Error + 'static));
                leg.end_leg(&adapter().read(view));
                if matches!(out, Ok(..400)) {
                    break;
                }
            }
            out
        })
    }
}
