//! What can be shared between threads, and what errors are.

use std::{error::Error, fmt::Debug};

use http::{Request, Response};
use tower_spillway_core::{
    Carried, Classified, Drive, Http, InvalidConfig, Ledger, NotReplayable, Refused, Report, Retry,
    RetryLayer, TimedOut,
    attempt_timeout::{AttemptTimeout, TimedBody},
    call::{Call, CallLayer},
    grpc_status::{FirstFrameBody, GrpcStatus, GrpcStatusLayer, ResponseFuture},
    replay::{Replay, ReplayBody, ReplayLayer},
    testing::{contract::ReadyProbe, readiness::WithReadiness, script::Script},
};

use crate::support::*;

fn shared<T: Send + Sync + Debug>() {}
fn sent<T: Send + Debug>() {}
fn error<T: Error + Send + Sync + 'static>() {}

type Upstream = Script<Request<Body>, Response<Body>>;
type Judge = fn(
    &tower_spillway_core::History,
    &tower_spillway_core::Outcome<'_, Response<Body>>,
) -> tower_spillway_core::Verdict;

#[test]
fn layers_services_and_records_are_shared() {
    shared::<Ledger>();
    shared::<Report>();
    shared::<Http>();
    shared::<Carried<u64>>();
    shared::<RetryLayer<Judge>>();
    shared::<CallLayer>();
    shared::<Retry<Upstream, Judge>>();
    shared::<Call<Upstream>>();
    shared::<AttemptTimeout<Upstream>>();
    shared::<GrpcStatusLayer>();
    shared::<GrpcStatus<Upstream>>();
    shared::<ReplayLayer>();
    shared::<Replay<Upstream>>();
    shared::<ReadyProbe<Upstream>>();
    shared::<WithReadiness<Upstream>>();
}

#[test]
fn futures_and_bodies_are_sent() {
    sent::<Drive<Upstream, Request<Body>, Judge, Http>>();
    sent::<TimedBody<Body>>();
    sent::<FirstFrameBody<Body>>();
    sent::<ResponseFuture<std::future::Ready<()>, Body>>();
    sent::<ReplayBody<Body>>();
}

#[test]
fn errors_are_errors() {
    error::<Refused>();
    error::<TimedOut>();
    error::<Classified>();
    error::<InvalidConfig>();
    error::<NotReplayable>();
}
