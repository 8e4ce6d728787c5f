//! Requests, answers and targets that the tests share.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a test may")]

pub mod server;

use std::{future::Future, time::Duration};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tokio::time::Instant;
use tower::{Service, ServiceExt};
use tower_spillway::core::{
    BoxError, Ledger, Report,
    testing::script::{Script, Step},
};

pub type Body = Full<Bytes>;
pub type Req = Request<Body>;
pub type Res = Response<Body>;
pub type Upstream = Script<Req, Res>;

pub const SECOND: Duration = Duration::from_secs(1);

pub fn post() -> Req {
    Request::post("/v1/chat/completions")
        .body(Full::from("hi"))
        .unwrap()
}

pub fn get() -> Req {
    Request::get("/").body(Full::default()).unwrap()
}

pub fn answer(status: u16, headers: &[(&'static str, &'static str)]) -> Res {
    let mut response = Response::new(Full::from(format!("status {status}")));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    for (name, value) in headers {
        response.headers_mut().insert(*name, value.parse().unwrap());
    }
    response
}

/// Always the same answer.
pub fn always(status: u16, headers: &[(&'static str, &'static str)]) -> Upstream {
    Script::always(Step::answer(answer(status, headers))).recording()
}

/// One call: its outcome, its report and how long it took.
#[derive(Debug)]
pub struct Called {
    pub out: Result<Res, BoxError>,
    pub report: Report,
    pub took: Duration,
}

impl Called {
    pub fn status(&self) -> u16 {
        self.out.as_ref().unwrap().status().as_u16()
    }
}

/// Sends one request with a ledger of the caller's, so that there is a report after an error too.
pub async fn send<S>(service: &mut S, mut request: Req) -> Called
where
    S: Service<Req, Response = Res, Error = BoxError>,
{
    let ledger = Ledger::new();
    request.extensions_mut().insert(ledger.clone());
    let (out, took) = timed(async { service.ready().await?.call(request).await }).await;
    Called {
        out,
        report: ledger.report(),
        took,
    }
}

pub async fn timed<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let start = Instant::now();
    let out = future.await;
    (out, start.elapsed())
}

/// The warnings that are logged while a future runs.
pub async fn warnings(future: impl Future<Output = ()>) -> Vec<String> {
    logged(tracing::Level::WARN, future).await
}

/// The events of a level and above that are logged while a future runs, one a line.
pub async fn logged(level: tracing::Level, future: impl Future<Output = ()>) -> Vec<String> {
    use std::{io::Write, sync::Arc, sync::Mutex};
    use tracing::instrument::WithSubscriber;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);
    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    future.with_subscriber(subscriber).await;
    let text = lines.0.lock().unwrap();
    String::from_utf8_lossy(&text)
        .lines()
        .map(str::to_string)
        .collect()
}
