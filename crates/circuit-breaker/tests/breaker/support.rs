use std::time::Duration;

use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt};
use tower_circuit_breaker::{BreakerConfig, CircuitBreaker, CircuitBreakerLayer, Refused};
use tower_spillway_core::{
    BoxError, Carried, Class, Failure, Ledger, Plain, Reading, TargetName,
    hint::{Hint, Source},
    ledger::LegPlan,
    testing::script::{Script, Step},
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) type Request = Carried<u64>;
/// A response is its own reading.
pub(crate) type Upstream = Script<Request, Reading>;
pub(crate) type Adapter = Plain<fn(Result<&Reading, Failure<'_>>) -> Reading>;

fn classify(out: Result<&Reading, Failure<'_>>) -> Reading {
    match out {
        Ok(reading) => reading.clone(),
        Err(_) => Class::Transient.into(),
    }
}

pub(crate) fn adapter() -> Adapter {
    Plain(classify)
}

/// Three failures open it for 5 s.
pub(crate) fn config() -> BreakerConfig {
    BreakerConfig::new()
        .failures(3)
        .open_time(5 * SECOND)
        .jitter(0.0)
}

pub(crate) fn layer(config: BreakerConfig) -> CircuitBreakerLayer<Adapter> {
    CircuitBreakerLayer::with_config(config)
        .unwrap()
        .adapter(Plain(classify))
}

pub(crate) fn answer(reading: impl Into<Reading>) -> Step<Reading> {
    Step::answer(reading.into())
}

pub(crate) fn hint(wait: Duration) -> Option<Hint> {
    Some(Hint::After {
        wait,
        source: Source::RetryAfterSeconds,
    })
}

pub(crate) fn request() -> Request {
    Carried::new(7)
}

/// A request on its way to a target, as a failover sends it.
pub(crate) fn request_to(target: &'static str) -> (Request, Ledger) {
    let mut request = request();
    let call = Ledger::enter(&Plain(classify), &mut request);
    let leg = call.open_leg(LegPlan::new(TargetName::from(target)), Instant::now());
    (request.with_ledger(leg.clone()), leg)
}

pub(crate) async fn send<S>(service: &mut S, request: Request) -> Result<Reading, BoxError>
where
    S: Service<Request, Response = Reading, Error = BoxError>,
{
    service.ready().await?.call(request).await
}

/// The refusal of the next call.
pub(crate) async fn refused<S>(service: &mut S) -> Refused
where
    S: Service<Request, Response = Reading, Error = BoxError>,
{
    let error = send(service, request()).await.expect_err("refused");
    *Refused::find(&*error).expect("a refusal")
}

/// A breaker that has just opened over an upstream that answers `steps` from then on.
pub(crate) async fn opened(
    layer: &CircuitBreakerLayer<Adapter>,
    steps: impl IntoIterator<Item = Step<Reading>>,
) -> (CircuitBreaker<Upstream, Adapter>, Upstream) {
    let down = std::iter::repeat_n(answer(Class::Transient), 3);
    let upstream = Script::new(down.chain(steps));
    let mut service = layer.layer(upstream.clone());
    for _ in 0..3 {
        send(&mut service, request()).await.unwrap();
    }
    (service, upstream)
}

/// Whether it is ready at once.
pub(crate) fn ready_now<S: Service<Request>>(service: &mut S) -> bool {
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    matches!(service.poll_ready(&mut cx), std::task::Poll::Ready(Ok(())))
}
