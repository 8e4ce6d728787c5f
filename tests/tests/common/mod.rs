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
    logs::install();
    Request::post("/v1/chat/completions")
        .body(Full::from("hi"))
        .unwrap()
}

pub fn get() -> Req {
    logs::install();
    Request::get("/").body(Full::default()).unwrap()
}

pub fn answer(status: u16, headers: &[(&'static str, &'static str)]) -> Res {
    logs::install();
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

/// The events of a level and above that are logged while a future runs, one a line. What the future
/// spawns counts where it runs on this thread.
pub async fn logged(level: tracing::Level, future: impl Future<Output = ()>) -> Vec<String> {
    logs::start(level);
    future.await;
    logs::stop()
}

/// One subscriber for the whole process, installed before the first event. With one for each test,
/// an event that is first met by two tests at once may be switched off for good.
mod logs {
    use std::{cell::RefCell, io, sync::Once};

    use tracing::{Level, Metadata};
    use tracing_subscriber::fmt::MakeWriter;

    thread_local! {
        static CAUGHT: RefCell<Option<(Level, Vec<u8>)>> = const { RefCell::new(None) };
    }

    pub fn install() {
        static INSTALLED: Once = Once::new();
        INSTALLED.call_once(|| {
            tracing_subscriber::fmt()
                .with_max_level(Level::TRACE)
                .with_ansi(false)
                .with_writer(Catcher)
                .init();
        });
    }

    pub fn start(level: Level) {
        install();
        CAUGHT.set(Some((level, Vec::new())));
    }

    pub fn stop() -> Vec<String> {
        let caught = CAUGHT.take().map(|(_, text)| text).unwrap_or_default();
        let text = String::from_utf8_lossy(&caught);
        text.lines().map(str::to_string).collect()
    }

    struct Catcher;

    /// Writes to this thread's own, if its level is asked for.
    struct Line(bool);

    impl<'w> MakeWriter<'w> for Catcher {
        type Writer = Line;

        fn make_writer(&'w self) -> Line {
            Line(false)
        }

        fn make_writer_for(&'w self, meta: &Metadata<'_>) -> Line {
            Line(CAUGHT.with_borrow(|c| c.as_ref().is_some_and(|(level, _)| meta.level() <= level)))
        }
    }

    impl io::Write for Line {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 {
                CAUGHT.with_borrow_mut(|caught| {
                    if let Some((_, text)) = caught {
                        text.extend_from_slice(bytes);
                    }
                });
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}
