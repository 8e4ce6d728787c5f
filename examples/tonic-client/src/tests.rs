use std::sync::{Arc, Mutex};

use axum::{Router, extract::Request as Incoming};
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use prost::Message;
use tonic::Code;

use super::*;
use End::{Head, Trailers};

type Fields = &'static [(&'static str, &'static str)];

const SERVED: Fields = &[("grpc-status", "0"), ("x-served-by", "trailers")];
const BUSY: Fields = &[("grpc-status", "14"), ("grpc-retry-pushback-ms", "60")];
const EXHAUSTED: Fields = &[("grpc-status", "8")];
const NEVER: Fields = &[("grpc-status", "14"), ("grpc-retry-pushback-ms", "-1")];
const WRONG: Fields = &[("grpc-status", "3"), ("grpc-message", "no")];

fn fields(fields: Fields) -> HeaderMap {
    let field = |(name, value): &(&'static str, &'static str)| {
        let name = HeaderName::from_static(name);
        (name, HeaderValue::from_static(value))
    };
    fields.iter().map(field).collect()
}

/// How a request ends: with these fields in the head; or in trailers, after this many messages.
#[derive(Clone, Copy)]
enum End {
    Head(Fields),
    Trailers(usize, Fields),
}

/// A server that ends the first requests so, and then greets.
async fn serve(first: &'static [End]) -> Result<Channel, BoxError> {
    let turns = Arc::new(Mutex::new(first.iter().copied()));
    let app = Router::new().fallback(async move |request: Incoming| {
        let turn = turns.lock().ok().and_then(|mut turns| turns.next());
        let mut response = http::Response::new(axum::body::Body::empty());
        let message = asked(request)
            .await
            .map(|asked| format!("Hello {}", asked.name));
        let end = match (turn, &message) {
            (Some(turn), _) => turn,
            (None, Some(_)) => Trailers(1, SERVED),
            (None, None) => Head(&[("grpc-status", "3")]),
        };
        match end {
            Head(with) => *response.headers_mut() = fields(with),
            Trailers(messages, with) => {
                let message = message.unwrap_or_default();
                let body = reply(&HelloReply { message }, messages, with);
                *response.body_mut() = axum::body::Body::new(body);
            }
        }
        let grpc = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert("content-type", grpc);
        response
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let uri = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(Endpoint::from_shared(uri)?.connect_lazy())
}

async fn asked(request: Incoming) -> Option<HelloRequest> {
    let body = request.into_body().collect().await.ok()?.to_bytes();
    HelloRequest::decode(body.get(5..)?).ok()
}

/// So many messages and the trailers after them.
fn reply(
    reply: &HelloReply,
    messages: usize,
    with: Fields,
) -> impl http_body::Body<Data = Bytes, Error = BoxError> + use<> {
    let mut message = BytesMut::new();
    message.put_u8(0);
    message.put_u32(u32::try_from(reply.encoded_len()).unwrap_or_default());
    message.put(reply.encode_to_vec().as_slice());
    let data = vec![message.freeze(); messages]
        .into_iter()
        .map(Frame::data);
    let frames = data.chain([Frame::trailers(fields(with))]);
    StreamBody::new(tonic::codegen::tokio_stream::iter(frames.map(Ok)))
}

async fn hello(channel: Channel) -> (Result<Response<HelloReply>, Status>, Report) {
    let ledger = Ledger::new();
    let mut request = Request::new(HelloRequest { name: "Ada".into() });
    request.extensions_mut().insert(ledger.clone());
    let service = stack(channel).expect("valid");
    (say_hello(service, request).await, ledger.report())
}

#[tokio::test]
async fn it_waits_as_long_as_the_server_pushes_back() -> Result<(), BoxError> {
    for first in [
        &[Head(BUSY), Head(EXHAUSTED)],
        &[Trailers(0, BUSY), Trailers(0, EXHAUSTED)],
    ] {
        let (out, report) = hello(serve(first).await?).await;
        let response = out?;
        assert_eq!(response.get_ref().message, "Hello Ada");
        assert_eq!(response.metadata().get("x-served-by").unwrap(), "trailers");
        assert_eq!(report.sends(), 3);
        // The hint, and at most half of it more.
        let pushed = report.attempts[0].wait.ok_or("no wait")?;
        assert!((60..=90).contains(&pushed.as_millis()), "{pushed:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_negative_pushback_and_a_fault_of_the_caller_end_it() -> Result<(), BoxError> {
    let forbids = (Code::Unavailable, Cause::ServerForbids);
    let fault = (Code::InvalidArgument, Cause::CallerFault);
    for (first, (code, cause)) in [
        (&[Head(NEVER)], forbids),
        (&[Head(WRONG)], fault),
        (&[Trailers(0, NEVER)], forbids),
        (&[Trailers(0, WRONG)], fault),
    ] {
        let (out, report) = hello(serve(first).await?).await;
        assert_eq!(out.map_err(|status| status.code()).err(), Some(code));
        assert_eq!(report.sends(), 1);
        assert_eq!(report.attempts[0].cause, Some(cause));
    }
    Ok(())
}

#[tokio::test]
async fn a_message_is_the_callers_whatever_comes_after_it() -> Result<(), BoxError> {
    let (out, report) = hello(serve(&[Trailers(1, BUSY)]).await?).await;
    assert_eq!(
        out.map_err(|status| status.code()).err(),
        Some(Code::Unavailable)
    );
    assert_eq!(report.sends(), 1);
    Ok(())
}
