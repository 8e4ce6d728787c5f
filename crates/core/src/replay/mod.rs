//! Request bodies that can be sent again: recorded while they are first sent, up to a limit.
//!
//! hyper's `Incoming`, axum's `Body` and tonic's `Body` can be read only once, so a request with
//! one of them could not be sent a second time. [`ReplayLayer`] turns a `Request<B>` into a
//! `Request<ReplayBody<B>>`. Put it outside all layers that send again: `Failover` and the
//! retrying layers share its one buffer.
//!
//! # What is recorded
//!
//! Nothing is read ahead: the first send streams the body as before, and each chunk that it reads
//! is kept by reference count (a body whose data is not [`Bytes`](bytes::Bytes) is made so, once).
//! Trailers are kept as well, and every copy has the size hint of the original, so that a replayed
//! request has the same `Content-Length`.
//!
//! At most [64 KiB](DEFAULT_LIMIT) are kept, or what [`ReplayLayer::up_to`] says. A body that
//! turns out longer loses its record and is sent on to its end; one whose size hint or
//! `Content-Length` says so from the start is never recorded, and can still be sent elsewhere after
//! an attempt that did not touch it: a refusal, a connection that was not made.
//!
//! # When a request is sent again
//!
//! If its body was not touched, or was read to its end. One that the client dropped half read,
//! because the connection broke, goes on from the record. Otherwise the outcome is returned with
//! [`Cause::NotReplayable`](crate::Cause::NotReplayable), and
//! [`Attempt::not_replayable`](crate::ledger::Attempt::not_replayable) says why:
//!
//! | why | when |
//! |---|---|
//! | longer than the limit | the record was given up, or never begun |
//! | half sent | a response came before the body was read to its end |
//! | still being sent | the client has not let go of it |
//! | reading it failed | the caller's body ended in an error |
//!
//! # Example
//!
//! A client that wants another body type gets it inside, by `MapRequestBodyLayer` of tower-http.
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//! use tower_http::map_request_body::MapRequestBodyLayer;
//! use tower_spillway_core::{BoxError, History, Ledger, Outcome, RetryLayer, Verdict, replay::ReplayLayer};
//! # use std::time::Duration;
//!
//! /// Can be read only once.
//! type Upload = UnsyncBoxBody<Bytes, std::io::Error>;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), BoxError> {
//! # let again = |_: &History, _: &Outcome<'_, Response<Full<Bytes>>>| Verdict::Retry { after: Duration::from_secs(1) };
//! let client = ServiceBuilder::new()
//!     .layer(ReplayLayer::new())
//!     .layer(RetryLayer::new(again))
//!     .layer(MapRequestBodyLayer::new(|body| UnsyncBoxBody::new(body)))
//!     .service(service_fn(|request: Request<UnsyncBoxBody<Bytes, BoxError>>| async {
//!         // Reads the upload to its end, then turns it away.
//!         let read = request.into_body().collect().await?.to_bytes();
//!         Ok::<_, BoxError>(Response::builder().status(503).body(Full::new(read))?)
//!     }));
//!
//! let upload: Upload = UnsyncBoxBody::new(Full::from("a stream").map_err(|e| match e {}));
//! let response = client.oneshot(Request::post("/").body(upload)?).await?;
//!
//! let report = response.extensions().get::<Ledger>().ok_or("no ledger")?.report();
//! assert_eq!(report.sends(), 3);
//! assert_eq!(response.into_body().collect().await?.to_bytes(), "a stream");
//! # Ok(())
//! # }
//! ```

mod body;
mod layer;
mod service;
mod tape;

pub use self::{
    body::ReplayBody,
    layer::{DEFAULT_LIMIT, ReplayLayer},
    service::Replay,
};
