//! A gRPC status that comes in trailers, read within the attempt.
//!
//! A server that fails before its first message may say so in the head (a trailers-only response),
//! which every layer reads, or send a plain head and the status in trailers after it. By then the
//! head was taken for a success, and nothing is sent again. [`GrpcStatusLayer`] looks at one frame
//! of the body before it gives the head on. Put it inside the layers that are to know, next to the
//! client.
//!
//! It looks where the outcome is still to come: a success over HTTP/2 whose content type is
//! `application/grpc`, without `grpc-status` in its head. All else passes as it is, gRPC-Web and
//! what a layer inside has put a [`Reading`](crate::Reading) on too.
//!
//! | first frame | the attempt |
//! |---|---|
//! | trailers | came to their status and pushback, as a [`Reading`](crate::Reading): see [`read_grpc`](crate::adapter::read_grpc). Without a status it failed |
//! | data | is a success so far; what comes after its first message is the caller's |
//! | an error of the body | ended in that error |
//! | none, the body ends | failed: a gRPC call has a status |
//! | none in time | is a success so far |
//!
//! The head is not changed, and the body yields every frame that it had, the trailers too: what a
//! caller such as tonic reads is the same with and without the layer.
//!
//! # Late first messages
//!
//! The head waits for the first frame. A server that streams may send its head at once and its first
//! message much later, and one that streams both ways may wait for the client, which may wait for
//! the head. So the wait is bounded, by 1 s from the head on ([`GrpcStatusLayer::within`]), after
//! which the head is given on and the trailers are the caller's. Zero looks only at what came with
//! the head. For unary calls `Duration::MAX` leaves the bound to an
//! [`AttemptTimeoutLayer`](crate::attempt_timeout) outside: its limit "to the head" is then one to
//! the first frame, and what has none by then is a timeout that can be sent again.
//!
//! # Bodies
//!
//! A body is moved after its first frame was polled, so it must be `Unpin`, as hyper's `Incoming`
//! and tonic's `Body` are. Layers whose bodies are not, such as
//! [`and_last_byte`](crate::attempt_timeout::AttemptTimeoutLayer::and_last_byte), go outside.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use bytes::Bytes;
//! use http::{HeaderMap, Request, Response, Version};
//! use http_body_util::{BodyExt, Full};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//! use tower_spillway_core::{
//!     BoxError, Class, History, Ledger, Outcome, RetryLayer, Verdict, grpc_status::GrpcStatusLayer,
//! };
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), BoxError> {
//! # let again = |_: &History, outcome: &Outcome<'_, _>| match outcome.class().may_pass() {
//! #     true => Verdict::Retry { after: Duration::from_secs(1) },
//! #     false => Verdict::Pass,
//! # };
//! let client = ServiceBuilder::new()
//!     .layer(RetryLayer::new(again))
//!     .layer(GrpcStatusLayer::new())
//!     .service(service_fn(|request: Request<Full<Bytes>>| async move {
//!         let attempt = request.extensions().get::<Ledger>().map_or(0, Ledger::attempt);
//!         // A head as that of a success. The first time nothing follows but RESOURCE_EXHAUSTED.
//!         let (message, code) = if attempt == 1 { ("", "8") } else { ("a message", "0") };
//!         let trailers = HeaderMap::from_iter([("grpc-status".parse()?, code.parse()?)]);
//!         let body = Full::new(Bytes::from(message)).with_trailers(async { Some(Ok(trailers)) });
//!         let head = Response::builder().version(Version::HTTP_2);
//!         Ok::<_, BoxError>(head.header("content-type", "application/grpc").body(Box::pin(body))?)
//!     }));
//!
//! let response = client.oneshot(Request::post("/Greeter/SayHello").body(Full::default())?).await?;
//! let report = response.extensions().get::<Ledger>().ok_or("no ledger")?.report();
//! assert_eq!(report.attempts[0].class, Class::Throttled);
//!
//! let body = response.into_body().collect().await?;
//! assert_eq!(body.trailers().ok_or("none")?["grpc-status"], "0");
//! assert_eq!(body.to_bytes(), "a message");
//! # Ok(())
//! # }
//! ```

mod body;
mod future;
mod layer;
mod service;

pub use self::{
    body::FirstFrameBody, future::ResponseFuture, layer::GrpcStatusLayer, service::GrpcStatus,
};
