//! What the profile `interactive` promises, at its own figures: on a clock that is paused, with a
//! client of the test's own in the place of the network. Connections are tried over sockets.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use opus_to_gemini::{
    config::Config,
    pipeline::{ChatRequest, Pipeline, Upstream},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{Instant, Sleep, sleep},
};
use tower::{ServiceExt, service_fn};
use tower_spillway_core::{BoxError, Ledger, Report, TimedOut, error::find};

const GEMINI: Duration = Duration::from_secs(2);
const SECOND: Duration = Duration::from_secs(1);

/// What Opus does.
#[derive(Clone, Copy)]
enum Opus {
    Hangs,
    Throttles,
    /// Pieces of an answer, one a second, so many.
    Streams(u32),
    /// The head and half of a plain answer.
    StallsInTheBody,
}

/// One piece a second, then the end or nothing.
struct Pieces {
    left: u32,
    ends: bool,
    next: Pin<Box<Sleep>>,
}

impl Pieces {
    fn new(left: u32, ends: bool) -> Self {
        let next = Box::pin(sleep(SECOND));
        Self { left, ends, next }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.left == 0 {
            return if self.ends {
                Poll::Ready(None)
            } else {
                Poll::Pending
            };
        }
        if pin!(&mut self.next).as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.left -= 1;
        self.next = Box::pin(sleep(SECOND));
        let mut piece = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n".to_owned();
        if self.left == 0 && self.ends {
            piece += "data: [DONE]\n\n";
        }
        Poll::Ready(Some(Ok(Frame::data(piece.into()))))
    }
}

type AnyBody = UnsyncBoxBody<Bytes, BoxError>;

fn whole(text: &'static str) -> AnyBody {
    let never = |never: Infallible| match never {};
    Full::from(text).map_err(never).boxed_unsync()
}

const ANSWER: &str = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;
const EVENTS: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n";

async fn vendor(opus: Opus, request: ChatRequest) -> Result<Response<AnyBody>, BoxError> {
    let is_opus = request.uri().host() == Some("api.anthropic.com");
    let body = request.into_body().collect().await?.to_bytes();
    let streams = std::str::from_utf8(&body)?.contains("\"stream\":true");
    let stream = |body| {
        let head = Response::builder().header("content-type", "text/event-stream");
        head.body(body)
    };
    let plain = |body| {
        let head = Response::builder().header("content-type", "application/json");
        head.body(body)
    };
    if !is_opus {
        sleep(GEMINI).await;
        return Ok(match streams {
            true => stream(whole(EVENTS))?,
            false => plain(whole(ANSWER))?,
        });
    }
    match opus {
        Opus::Hangs => std::future::pending().await,
        Opus::Throttles => Ok(Response::builder()
            .status(429)
            .header("retry-after", "30")
            .body(whole(
                "{\"error\":{\"code\":\"rate_limit_error\",\"message\":\"slow down\"}}",
            ))?),
        Opus::Streams(seconds) => Ok(stream(Pieces::new(seconds, true).boxed_unsync())?),
        Opus::StallsInTheBody => Ok(plain(Pieces::new(1, false).boxed_unsync())?),
    }
}

fn stack(opus: Opus, in_flight: u32) -> Pipeline {
    Pipeline::builder()
        .target(Upstream::opus("k").in_flight(in_flight))
        .target(Upstream::gemini("k").in_flight(in_flight))
        .client(service_fn(move |request| vendor(opus, request)))
        .build()
        .unwrap()
}

/// The bytes of the answer, and how it came about.
async fn ask(pipeline: &Pipeline, stream: bool) -> (Result<Bytes, BoxError>, Report) {
    let body = format!(r#"{{"messages":[{{"role":"user","content":"hi"}}],"stream":{stream}}}"#);
    let mut request = Request::new(Full::from(body));
    let ledger = Ledger::new();
    request.extensions_mut().insert(ledger.clone());
    let out = match pipeline.clone().oneshot(request).await {
        Ok(response) => response.into_body().collect().await.map(|b| b.to_bytes()),
        Err(error) => Err(error),
    };
    (out, ledger.report())
}

fn served(report: &Report) -> &str {
    report.target.as_ref().unwrap().as_str()
}

#[tokio::test(start_paused = true)]
async fn opus_hangs_and_the_first_stream_is_answered_after_8_s_and_geminis_own_time() {
    let pipeline = stack(Opus::Hangs, 50);
    let start = Instant::now();
    let (out, report) = ask(&pipeline, true).await;
    assert!(out.is_ok());
    assert_eq!((served(&report), report.sends()), ("gemini", 2));
    let took = start.elapsed();
    assert!(
        took >= 8 * SECOND && took <= 8 * SECOND + GEMINI + SECOND / 100,
        "{took:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_429_of_30_s_costs_less_than_a_second() {
    let pipeline = stack(Opus::Throttles, 50);
    // The first hears it, the others are held.
    for sends in [2, 1, 1] {
        for stream in [true, false]
            .into_iter()
            .take(if sends == 2 { 1 } else { 2 })
        {
            let start = Instant::now();
            let (out, report) = ask(&pipeline, stream).await;
            assert!(out.is_ok());
            assert_eq!((served(&report), report.sends()), ("gemini", sends));
            let took = start.elapsed();
            assert!(took <= SECOND + GEMINI, "{took:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn at_200_calls_a_second_while_opus_hangs_gemini_answers_every_one() {
    for stream in [true, false] {
        let pipeline = stack(Opus::Hangs, 2_000);
        let mut calls = JoinSet::new();
        for _ in 0..200 * 20 {
            let pipeline = pipeline.clone();
            calls.spawn(async move { ask(&pipeline, stream).await });
            sleep(SECOND / 200).await;
        }
        let calls = calls.join_all().await;
        assert_eq!(calls.len(), 4_000);
        for (out, report) in calls {
            assert!(out.is_ok(), "{out:?} {report:?}");
            assert_eq!(served(&report), "gemini");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_healthy_stream_of_20_s_is_not_cut() {
    let pipeline = stack(Opus::Streams(20), 50);
    let start = Instant::now();
    let (out, report) = ask(&pipeline, true).await;
    let stream = String::from_utf8(out.unwrap().to_vec()).unwrap();
    assert_eq!(stream.matches("content").count(), 20);
    assert!(stream.ends_with("[DONE]\n\n"), "{stream}");
    assert_eq!((served(&report), report.sends()), ("opus", 1));
    assert!(start.elapsed() >= 20 * SECOND);
    // Nor one that is longer than every limit of the profile together.
    let pipeline = stack(Opus::Streams(300), 50);
    assert!(
        ask(&pipeline, true)
            .await
            .0
            .unwrap()
            .ends_with(b"[DONE]\n\n")
    );
}

#[tokio::test(start_paused = true)]
async fn a_plain_answer_that_stalls_in_mid_body_is_cut_and_gemini_answers() {
    let pipeline = stack(Opus::StallsInTheBody, 50);
    let start = Instant::now();
    let (out, report) = ask(&pipeline, false).await;
    assert_eq!(out.unwrap(), ANSWER);
    assert_eq!((served(&report), report.sends()), ("gemini", 2));
    let took = start.elapsed();
    assert!(
        took >= 60 * SECOND && took <= 60 * SECOND + GEMINI + SECOND / 100,
        "{took:?}"
    );
}

/// Answers on connections, except on those that were open when it was told to be a black hole.
struct Holes {
    url: String,
    accepted: Arc<AtomicUsize>,
    /// Connections up to this number swallow what they get.
    hole: Arc<AtomicUsize>,
}

impl Holes {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (accepted, hole) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (count, until) = (Arc::clone(&accepted), Arc::clone(&hole));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::Relaxed) + 1;
                tokio::spawn(serve(stream, number, Arc::clone(&until)));
            }
        });
        Self {
            url,
            accepted,
            hole,
        }
    }
}

async fn serve(mut stream: TcpStream, number: usize, hole: Arc<AtomicUsize>) {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = stream.read(&mut buffer).await {
        seen.extend_from_slice(&buffer[..n]);
        // The end of the request: its only object closes last.
        if !seen.ends_with(b"}") || number <= hole.load(Ordering::Relaxed) {
            continue;
        }
        seen.clear();
        // So that calls at one time get connections of their own.
        sleep(Duration::from_millis(20)).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ";
        let answer = format!("{head}{}\r\n\r\n{ANSWER}", ANSWER.len());
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_black_holed_connection_is_not_used_by_the_resend() {
    let server = Holes::start().await;
    let mut config = Config::interactive();
    config.backoff.base = Duration::from_millis(1);
    config.backoff.cap = Duration::from_millis(1);
    // One target, so that the timeout is retried there.
    let limit = SECOND;
    let pipeline = Pipeline::builder()
        .config(config)
        .target(
            Upstream::opus("k")
                .url(server.url.clone())
                .within(limit, limit),
        )
        .build()
        .unwrap();
    let mut calls = JoinSet::new();
    for _ in 0..3 {
        let pipeline = pipeline.clone();
        calls.spawn(async move { ask(&pipeline, false).await.0.unwrap() });
    }
    calls.join_all().await;
    let idle = server.accepted.load(Ordering::Relaxed);
    assert!(idle >= 2, "several are kept in the pool");

    server.hole.store(idle, Ordering::Relaxed);
    let (out, report) = ask(&pipeline, false).await;
    assert_eq!(out.unwrap(), ANSWER);
    // One attempt in the hole; the next has a connection of its own, although idle ones are there.
    assert_eq!(report.sends(), 2);
    assert_eq!(server.accepted.load(Ordering::Relaxed), idle + 1);
}

#[tokio::test(start_paused = true)]
async fn without_another_target_a_hang_ends_in_a_typed_timeout() {
    let pipeline = Pipeline::builder()
        .target(Upstream::opus("k"))
        .client(service_fn(|request| vendor(Opus::Hangs, request)))
        .build()
        .unwrap();
    let (out, report) = ask(&pipeline, true).await;
    let error = out.unwrap_err();
    assert!(find::<TimedOut>(&*error).is_some(), "{error}");
    // Three in a row open the breaker.
    assert_eq!(report.sends(), 3);
}
