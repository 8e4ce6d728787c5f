//! Requests, responses and upstreams of these tests.

use std::time::Duration;

use http::{Request, Response};
use tower_spillway_core::{
    Class, Failure,
    testing::script::{Script, Step},
};

pub(crate) const MS: Duration = Duration::from_millis(1);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

pub(crate) type Upstream = Script<Request<String>, Response<String>>;

pub(crate) fn get() -> Request<String> {
    Request::new("question".to_owned())
}

/// A response with this status, and `Retry-After` unless it is empty.
pub(crate) fn response(status: u16, retry_after: &str) -> Response<String> {
    let builder = Response::builder().status(status);
    let builder = match retry_after {
        "" => builder,
        value => builder.header("retry-after", value),
    };
    builder.body(format!("body of {status}")).unwrap()
}

pub(crate) fn answers<const N: usize>(answers: [(u16, &'static str); N]) -> Upstream {
    Script::new(answers.map(|(status, hint)| Step::answer_with(move || response(status, hint))))
}

pub(crate) fn classify<Res>(result: Result<&Res, Failure<'_>>) -> Class {
    if result.is_ok() {
        Class::Success
    } else {
        Class::Transient
    }
}
