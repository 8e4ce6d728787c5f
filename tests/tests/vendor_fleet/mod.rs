//! Targets behind the layers of a vendor's stack, over scripts.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use serde_json::json;
use tower::{Service, ServiceExt, util::BoxCloneSyncService};
use tower_circuit_breaker::{Breaker, BreakerConfig, CircuitBreakerLayer, State};
use tower_failover::{FailoverService, Target};
use tower_jitter_backoff::{Jitter, JitterBackoffLayer};
use tower_layer::Layer;
use tower_retry_after::RetryAfterLayer;
use tower_spillway_core::{
    BoxError, Ledger, Report,
    call::CallLayer,
    hint,
    testing::script::{Script, Step},
};
use tower_spillway_llm::{PeekedBody, Vendor, VendorVerdictLayer};

pub type Body = Full<Bytes>;
pub type Req = Request<Body>;
pub type Res = Response<PeekedBody<Body>>;
pub type Upstream = Script<Req, Response<Body>>;
pub type Stack = BoxCloneSyncService<Req, Res, BoxError>;

pub const SECOND: Duration = Duration::from_secs(1);

pub fn answer(status: u16, body: &str) -> Response<Body> {
    let response = Response::builder().status(status);
    response.body(Full::from(body.to_owned())).unwrap()
}

pub fn ok() -> Response<Body> {
    answer(200, r#"{"choices":[{"message":{"content":"hello"}}]}"#)
}

pub fn always(response: Response<Body>) -> Upstream {
    Script::always(Step::answer(response)).recording()
}

pub fn hinted(status: u16, seconds: &'static str) -> Response<Body> {
    let mut response = answer(status, "{}");
    response
        .headers_mut()
        .insert("retry-after", seconds.parse().unwrap());
    response
}

/// A vendor's table.
pub fn table(vendor: Vendor) -> VendorVerdictLayer {
    VendorVerdictLayer::new(vendor)
}

/// The layers of one target over a script, and its breaker.
pub fn stack(
    verdicts: &VendorVerdictLayer,
    upstream: &Upstream,
    config: BreakerConfig,
) -> (Stack, CircuitBreakerLayer) {
    let breaker = CircuitBreakerLayer::with_config(config.jitter(0.0)).unwrap();
    let quiet = JitterBackoffLayer::constant(SECOND)
        .unwrap()
        .jitter(Jitter::None);
    let service = quiet.layer(
        RetryAfterLayer::new()
            .jitter(hint::Jitter::None)
            .layer(breaker.layer(verdicts.layer(upstream.clone()))),
    );
    (BoxCloneSyncService::new(service), breaker)
}

/// Targets in order, with a breaker each.
pub struct Fleet {
    pub client: FailoverService<Stack, Req>,
    pub breakers: Vec<Breaker>,
}

pub fn fleet(
    config: &BreakerConfig,
    upstreams: &[(&'static str, VendorVerdictLayer, &Upstream)],
) -> Fleet {
    let mut breakers = Vec::new();
    let targets: Vec<_> = upstreams
        .iter()
        .map(|(name, verdicts, upstream)| {
            let (stack, breaker) = stack(verdicts, upstream, config.clone());
            let breaker = breaker.breaker(*name);
            breakers.push(breaker.clone());
            Target::new(*name, stack)
                .usable_if(move || breaker.state() != State::Open)
                .retry_ambiguous(true)
        })
        .collect();
    let client = FailoverService::new(targets).unwrap();
    Fleet { client, breakers }
}

pub struct Called {
    pub out: Result<Res, BoxError>,
    pub report: Report,
}

impl Called {
    pub fn status(&self) -> u16 {
        self.out.as_ref().unwrap().status().as_u16()
    }

    pub fn served_by(&self) -> &str {
        self.report.target.as_ref().unwrap().as_str()
    }
}

pub async fn send<S>(client: &S, mut request: Req) -> Called
where
    S: Service<Req, Response = Res> + Clone,
    S::Error: Into<BoxError>,
{
    let ledger = Ledger::new();
    request.extensions_mut().insert(ledger.clone());
    let client = CallLayer::new().layer(client.clone());
    Called {
        out: client.oneshot(request).await,
        report: ledger.report(),
    }
}

pub fn chat() -> Req {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    Request::post("/v1/chat/completions")
        .body(Full::from(body.to_string()))
        .unwrap()
}
