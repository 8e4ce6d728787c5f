//! Small parts that the tests share.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use tower::{Layer, util::BoxCloneSyncService};
use tower_service::Service;
use tower_spillway_core::{
    BoxError, Carried, Class, Detached, Engine, Failure, History, Limits, Outcome, Plain, Policy,
    Read, Resend, RetryLayer, Verdict,
    testing::script::{Script, Step},
};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

// -- not http: the response is a status ------------------------------------------------------

pub(crate) type Classify = fn(Result<&u16, Failure<'_>>) -> Class;

fn classify(out: Result<&u16, Failure<'_>>) -> Class {
    match out {
        Ok(200) => Class::Success,
        Ok(429) => Class::Throttled,
        Ok(400) => Class::CallerFault,
        Ok(401) => Class::TargetDown,
        Ok(413) => Class::NotHere,
        _ => Class::Transient,
    }
}

pub(crate) fn plain() -> Plain<Classify> {
    Plain(classify)
}

pub(crate) fn detached() -> Detached<Classify> {
    Detached(classify)
}

pub(crate) type Upstream = Script<Carried<u64>, u16>;

pub(crate) fn always(status: u16) -> Upstream {
    Script::always(Step::answer(status))
}

pub(crate) fn then(statuses: &[u16]) -> Upstream {
    Script::new(statuses.iter().map(|status| Step::answer(*status)))
}

// -- http ------------------------------------------------------------------------------------

pub(crate) type Body = Full<Bytes>;

pub(crate) fn request(method: Method) -> Request<Body> {
    let mut request = Request::new(Full::new(Bytes::from_static(b"question")));
    *request.method_mut() = method;
    request
}

pub(crate) fn response(status: u16, headers: &[(&'static str, &str)]) -> Response<Body> {
    let mut builder = Response::builder().status(status);
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder
        .body(Full::new(Bytes::from(format!("body of a {status}"))))
        .unwrap()
}

pub(crate) fn answer(status: u16, headers: &[(&'static str, &str)]) -> Step<Response<Body>> {
    Step::answer(response(status, headers))
}

pub(crate) async fn text<B>(body: B) -> Bytes
where
    B: http_body::Body,
    B::Error: std::fmt::Debug,
{
    body.collect().await.unwrap().to_bytes()
}

// -- policies and stacks ---------------------------------------------------------------------

pub(crate) fn verdict<Res>(verdict: Verdict) -> impl Policy<Res> + Clone + Send + Sync {
    move |_: &History, _: &Outcome<'_, Res>| verdict
}

pub(crate) fn retry<Res>(after: Duration) -> impl Policy<Res> + Clone + Send + Sync {
    verdict(Verdict::Retry { after })
}

pub(crate) fn sends(most: u32) -> Limits {
    Limits {
        max_attempts: Some(most),
        ..Limits::default()
    }
}

pub(crate) type Boxed<Req, Res> = BoxCloneSyncService<Req, Res, BoxError>;

/// Puts layers around a service, the first one outermost, whatever their number.
pub(crate) fn stack<Req, Res, P, A>(
    layers: impl IntoIterator<Item = RetryLayer<P, A>, IntoIter: DoubleEndedIterator>,
    inner: Script<Req, Res>,
) -> Boxed<Req, Res>
where
    Req: Send + 'static,
    Res: Send + 'static,
    P: Policy<Res> + Send + Sync + 'static,
    A: Resend<Req> + Read<Res> + Send + Sync + 'static,
{
    layers
        .into_iter()
        .rev()
        .fold(BoxCloneSyncService::new(inner), |inner, layer| {
            BoxCloneSyncService::new(layer.layer(inner))
        })
}

pub(crate) fn plain_retry<P>(policy: P, limits: Limits) -> RetryLayer<P, Plain<Classify>>
where
    P: Policy<u16> + Clone,
{
    RetryLayer::from_engine(Engine::new(policy, plain()).limits(limits))
}

/// Calls a clone of a service once it is ready.
pub(crate) async fn call<S, Req>(service: &S, request: Req) -> Result<S::Response, S::Error>
where
    S: Service<Req> + Clone,
{
    tower::ServiceExt::oneshot(service.clone(), request).await
}
