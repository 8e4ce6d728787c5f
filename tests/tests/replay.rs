//! Request bodies that can be read only once, over loopback HTTP and through whole stacks.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

mod common;

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use common::{
    Res, answer,
    server::{Act, Seen, Server},
};
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tower_spillway::{core::ledger::Attempt, prelude::*};

const MS: Duration = Duration::from_millis(1);

/// What a caller is still sending. Not `Clone`.
struct Upload {
    chunks: mpsc::UnboundedReceiver<&'static str>,
    length: Option<u64>,
}

impl Upload {
    /// Its chunks come as `send` sends them; it ends when that is dropped.
    fn open() -> (mpsc::UnboundedSender<&'static str>, Self) {
        let (send, chunks) = mpsc::unbounded_channel();
        let length = None;
        (send, Self { chunks, length })
    }

    /// All of it is there.
    fn of(chunks: &[&'static str]) -> Self {
        let (send, upload) = Self::open();
        for chunk in chunks {
            send.send(chunk).unwrap();
        }
        upload
    }

    fn knowing_its_length(mut self, length: u64) -> Self {
        self.length = Some(length);
        self
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let chunk = std::task::ready!(self.chunks.poll_recv(cx));
        Poll::Ready(chunk.map(|chunk| {
            self.length = self.length.map(|left| left - chunk.len() as u64);
            Ok(Frame::data(Bytes::from_static(chunk.as_bytes())))
        }))
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

fn client() -> Client<HttpConnector, ReplayBody<Upload>> {
    Client::builder(TokioExecutor::new()).build_http()
}

fn request(method: Method, uri: &http::Uri, upload: Upload) -> Request<Upload> {
    let mut request = Request::new(upload);
    *request.method_mut() = method;
    *request.uri_mut() = uri.clone();
    request
}

/// Through a replay layer and a retrying layer of 3 sends: the status, and what was recorded.
async fn sent<S, B>(
    replay: ReplayLayer,
    client: S,
    mut request: Request<Upload>,
) -> (Result<StatusCode, BoxError>, Vec<Attempt>)
where
    S: Service<Request<ReplayBody<Upload>>, Response = Response<B>> + Clone,
    S::Error: Into<BoxError>,
    B: Body,
{
    let ledger = Ledger::new();
    request.extensions_mut().insert(ledger.clone());
    let stack = ServiceBuilder::new()
        .layer(replay)
        .layer(JitterBackoffLayer::constant(MS).unwrap())
        .service(client);
    let out = stack.oneshot(request).await;
    (out.map(|r| r.status()), ledger.report().attempts)
}

/// Fails the first request it gets, is well after that.
async fn failing_once(act: impl Fn() -> Act + Send + Sync + 'static) -> Server {
    let seen = AtomicU32::new(0);
    Server::start(move |_| match seen.fetch_add(1, Ordering::SeqCst) {
        0 => act(),
        _ => Act::Answer(answer(200, &[])),
    })
    .await
}

fn bodies(log: &[Seen]) -> Vec<&[u8]> {
    log.iter().map(|seen| &*seen.body).collect()
}

#[tokio::test]
async fn a_streamed_upload_is_sent_again_after_a_503() {
    let server = failing_once(|| Act::Answer(answer(503, &[]))).await;
    let (send, upload) = Upload::open();
    let sender = tokio::spawn(async move {
        for chunk in ["one, ", "two, ", "three"] {
            send.send(chunk).unwrap();
            tokio::task::yield_now().await;
        }
    });
    let request = request(Method::POST, &server.uri("/"), upload);
    let (status, attempts) = sent(ReplayLayer::new(), client(), request).await;
    sender.await.unwrap();
    assert_eq!(status.unwrap(), 200);
    assert_eq!(attempts.len(), 2);
    let log = server.log();
    assert_eq!(bodies(&log), [b"one, two, three", b"one, two, three"]);
    for seen in log {
        assert_eq!(seen.headers["transfer-encoding"], "chunked");
    }
}

#[tokio::test]
async fn both_sends_have_the_same_content_length() {
    let server = failing_once(|| Act::Answer(answer(503, &[]))).await;
    let upload = Upload::of(&["ab", "cd"]).knowing_its_length(4);
    let known = request(Method::POST, &server.uri("/"), upload);
    // Only the header knows: the client stops reading at the fourth byte, before the end.
    let mut announced = request(Method::POST, &server.uri("/"), Upload::of(&["ab", "cd"]));
    let length = http::HeaderValue::from(4);
    announced.headers_mut().insert("content-length", length);
    for request in [known, announced] {
        let (status, _) = sent(ReplayLayer::new(), client(), request).await;
        assert_eq!(status.unwrap(), 200);
    }
    let log = server.log();
    assert_eq!(bodies(&log), [b"abcd"; 3]);
    assert!(log.iter().all(|seen| seen.headers["content-length"] == "4"));

    let again = failing_once(|| Act::Answer(answer(503, &[]))).await;
    let mut announced = request(Method::POST, &again.uri("/"), Upload::of(&["ab", "cd"]));
    let length = http::HeaderValue::from(4);
    announced.headers_mut().insert("content-length", length);
    let (status, _) = sent(ReplayLayer::new(), client(), announced).await;
    assert_eq!(status.unwrap(), 200);
    assert_eq!(bodies(&again.log()), [b"abcd"; 2]);
}

#[tokio::test]
async fn over_the_limit_it_is_sent_once_whole_and_the_report_says_why() {
    let server = Server::start(|_| Act::Answer(answer(503, &[]))).await;
    let unknown = Upload::of(&["four", "more"]);
    let known = Upload::of(&["four", "more"]).knowing_its_length(8);
    for upload in [unknown, known] {
        let request = request(Method::POST, &server.uri("/"), upload);
        let replay = ReplayLayer::up_to(7).unwrap();
        let (status, attempts) = sent(replay, client(), request).await;
        assert_eq!(status.unwrap(), 503);
        assert_eq!(attempts.len(), 1);
        assert_eq!(attempts[0].cause, Some(Cause::NotReplayable));
        let why = attempts[0].not_replayable.unwrap().why();
        assert_eq!(why, "the body is longer than the replay limit");
    }
    assert_eq!(bodies(&server.log()), [b"fourmore"; 2]);
}

/// Reads the first `bytes` that come on each connection and then does what `act` says: the answer,
/// and whether the connection stays open.
async fn early(
    needle: &'static str,
    act: impl Fn(usize) -> (&'static str, bool) + Send + 'static,
) -> (http::Uri, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    let log = Arc::new(Mutex::new(Vec::new()));
    let seen = log.clone();
    tokio::spawn(async move {
        let mut open = Vec::new();
        for n in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut text = String::new();
            let (answer, stays) = act(n);
            while !text.contains(needle) {
                let mut buffer = [0; 4096];
                let read = stream.read(&mut buffer).await.unwrap();
                assert!(read > 0, "closed after {text:?}");
                text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
            }
            seen.lock().unwrap().push(text);
            stream.write_all(answer.as_bytes()).await.unwrap();
            if stays {
                open.push(stream);
            }
        }
    });
    (uri.parse().unwrap(), log)
}

#[tokio::test]
async fn a_half_sent_body_that_is_answered_early_is_not_sent_again() {
    for (answer, status) in [
        ("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", 503),
        ("HTTP/1.1 413 Large\r\ncontent-length: 0\r\n\r\n", 413),
    ] {
        for stays in [true, false] {
            let (uri, log) = early("half", move |_| (answer, stays)).await;
            let (send, upload) = Upload::open();
            send.send("half").unwrap();
            let request = request(Method::PUT, &uri, upload);
            let (out, attempts) = sent(ReplayLayer::new(), client(), request).await;
            assert_eq!(out.unwrap(), status);
            assert_eq!(log.lock().unwrap().len(), 1, "{status}: sent once");
            if status == 503 {
                assert_eq!(attempts[0].cause, Some(Cause::NotReplayable));
                let why = attempts[0].not_replayable.unwrap().why();
                let half = why == "the body was only half sent";
                assert!(half || why == "the body is still being sent", "{why}");
            }
        }
    }
}

#[tokio::test]
async fn an_upload_that_broke_half_way_goes_on_from_the_record() {
    let done = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let (uri, log) = early("one, ", move |n| (["", done][n.min(1)], n > 0)).await;
    let (send, upload) = Upload::open();
    send.send("one, ").unwrap();
    let call = tokio::spawn(async move {
        let request = request(Method::PUT, &uri, upload);
        sent(ReplayLayer::new(), client(), request).await
    });
    let (status, attempts) = call.await.unwrap();
    assert_eq!(status.unwrap(), 200);
    assert_eq!(attempts.len(), 2);
    assert_eq!(attempts[0].status, None, "the connection was closed");
    assert_eq!(log.lock().unwrap().len(), 2);
    // What the caller sends later would have gone on the second connection.
    assert!(log.lock().unwrap()[1].contains("one, "));
}

#[tokio::test(start_paused = true)]
async fn two_retrying_layers_and_a_failover_share_one_buffer() {
    type Chunks = Arc<Mutex<Vec<(&'static str, Vec<Bytes>)>>>;
    let log = Chunks::default();
    let target = |name: &'static str, status: u16| {
        let log = log.clone();
        let service = service_fn(move |request: Request<ReplayBody<Upload>>| {
            let log = log.clone();
            async move {
                let mut body = request.into_body();
                let mut chunks = Vec::new();
                while let Some(frame) = body.frame().await {
                    chunks.push(frame?.into_data().unwrap());
                }
                log.lock().unwrap().push((name, chunks));
                Ok::<Res, BoxError>(answer(status, &[]))
            }
        });
        let stack = ServiceBuilder::new()
            .layer(JitterBackoffLayer::constant(MS).unwrap())
            .layer(RetryAfterLayer::new())
            .service(service);
        Target::new(name, tower::util::BoxCloneSyncService::new(stack))
    };
    let stack = ServiceBuilder::new()
        .layer(CallLayer::new())
        .layer(ReplayLayer::new())
        .service(FailoverService::new([target("opus", 503), target("gemini", 200)]).unwrap());
    let long = "a chunk that is long enough to be kept by reference, not joined with others";
    let response = stack
        .oneshot(request(
            Method::POST,
            &http::Uri::from_static("/"),
            Upload::of(&[long, long]),
        ))
        .await
        .unwrap();
    assert_eq!(response.status(), 200);

    let log = log.lock().unwrap();
    let names: Vec<_> = log.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["opus", "opus", "gemini"]);
    for (name, chunks) in log.iter() {
        assert_eq!(chunks.len(), 2, "{name}");
        for chunk in chunks {
            assert_eq!(chunk.as_ptr(), long.as_ptr(), "{name}: by reference");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_hop_asks_whether_the_body_is_still_there() {
    let target = |name: &'static str| {
        let service = service_fn(|request: Request<ReplayBody<Upload>>| async {
            request.into_body().collect().await?;
            Ok::<Res, BoxError>(answer(503, &[]))
        });
        Target::new(name, tower::util::BoxCloneSyncService::new(service))
    };
    let stack = ServiceBuilder::new()
        .layer(ReplayLayer::up_to(3).unwrap())
        .service(FailoverService::new([target("opus"), target("gemini")]).unwrap());
    let uri = http::Uri::from_static("/");
    let over = request(Method::PUT, &uri, Upload::of(&["ab", "cd"]));
    let response = stack.clone().oneshot(over).await.unwrap();
    let report = response.extensions().get::<Ledger>().unwrap().report();
    assert_eq!(report.sends(), 1);
    assert_eq!(report.attempts[0].cause, Some(Cause::NotReplayable));
    let why = report.attempts[0].not_replayable.unwrap().why();
    assert_eq!(why, "the body is longer than the replay limit");

    let within = request(Method::PUT, &uri, Upload::of(&["ab", "c"]));
    let response = stack.oneshot(within).await.unwrap();
    let report = response.extensions().get::<Ledger>().unwrap().report();
    assert_eq!(report.sends(), 2);
}

#[tokio::test]
async fn an_attempt_that_did_not_touch_the_body_costs_it_nothing() {
    let nobody = http::Uri::from_static("http://127.0.0.1:1/");
    let server = Server::start(|_| Act::Answer(answer(200, &[]))).await;
    let target = |name: &'static str, uri: http::Uri| {
        Target::new(name, client()).prepare(move |request: &mut Request<ReplayBody<Upload>>| {
            *request.uri_mut() = uri.clone();
            Ok(())
        })
    };
    let targets = [target("opus", nobody), target("gemini", server.uri("/"))];
    let stack = ServiceBuilder::new()
        .layer(ReplayLayer::up_to(1).unwrap())
        .service(FailoverService::new(targets).unwrap());
    let long = Upload::of(&["much ", "longer"]).knowing_its_length(11);
    let request = request(Method::POST, &http::Uri::from_static("/"), long);
    assert_eq!(stack.oneshot(request).await.unwrap().status(), 200);
    assert_eq!(bodies(&server.log()), [b"much longer"]);
}

#[tokio::test]
async fn a_body_of_hyper_goes_through() {
    // A proxy: what comes in is hyper's `Incoming`, which cannot be cloned.
    let upstream = failing_once(|| Act::Answer(answer(503, &[]))).await;
    let uri = upstream.uri("/");
    let stack = ServiceBuilder::new()
        .layer(ReplayLayer::new())
        .layer(JitterBackoffLayer::constant(MS).unwrap())
        .service(Client::builder(TokioExecutor::new()).build_http());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let service = hyper::service::service_fn(|mut request: Request<hyper::body::Incoming>| {
            *request.uri_mut() = uri.clone();
            stack.clone().oneshot(request)
        });
        hyper::server::conn::http1::Builder::new()
            .serve_connection(hyper_util::rt::TokioIo::new(stream), service)
            .await
    });
    let mut request = Request::new(Full::<Bytes>::from("through a proxy"));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = format!("http://{proxy}/").parse().unwrap();
    let response = common::server::client().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(bodies(&upstream.log()), [b"through a proxy"; 2]);
}
