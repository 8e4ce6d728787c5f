//! Holds a stream until there is something in it, and checks it to its end.
//!
//! # Overview
//!
//! A 200 that dies after three tokens is a failure that a retry cannot mend: the caller has a part
//! of the answer. A 200 that dies before the first token is a failure like any other, if nobody has
//! given the head to the caller. [`StreamGuardLayer`] keeps a `text/event-stream` until its first
//! content, so that retry and failover see what became of it. It stands in a target's own stack,
//! outside [`VendorVerdict`](crate::VendorVerdict).
//!
//! | until the first content | outcome |
//! |---|---|
//! | an error in an event | a response of its status with its JSON and a `Reading`, by the vendor's [`Rules`](crate::Rules) |
//! | the connection fails, the stream ends | [`StreamBroken`], Transient |
//! | an event is no JSON, too many bytes come without content | [`StreamBroken`], Transient |
//! | a limit of [`StreamLimits`] runs out | [`StreamBroken`], Transient, timed out |
//!
//! Content is text, a tool call, reasoning, a refusal, or a kind that is not known yet. The role,
//! `message_start`, `response.created`, pings and comments are none. An answer that is over without
//! any content (a finish reason comes first) is an answer.
//!
//! # From the first content on
//!
//! Whole events are given on byte for byte; an event is kept back until it is whole. The end is
//! checked: a finish reason for each answer, or the last event of its dialect. What breaks before
//! that ends for the caller in one error event in the stream's own [`Dialect`], and a clean end of
//! the body; never in `[DONE]`, never in silence. The vendor's own error event is given on as it is
//! where a caller sees it as one. What follows it is not.
//!
//! The layers outside find how it ended in the [`BodyEnd`](tower_spillway_core::BodyEnd) of the
//! response, and the tokens it counted in its [`StreamUsage`].
//!
//! # No partial answers
//!
//! With [`Commit::Complete`] nothing is given out before all is there: the whole answer, or a
//! failure that a later target can mend.
//!
//! # A target that serves nobody
//!
//! As with [`VendorVerdict`](crate::VendorVerdict) there is one warning that says what to do, and no
//! other like it for this target until it has succeeded again: with a stream that is whole, or with a
//! plain answer.
//!
//! # What is not guarded
//!
//! Answers that are no `text/event-stream`, and compressed ones, pass as they are. Gemini streams a
//! JSON array unless it is asked with `alt=sse`.
//!
//! # Memory
//!
//! A stream has one allocation for its state; what is held is bounded by
//! [`most_held`](StreamGuardLayer::most_held) and, with [`Commit::Complete`], by
//! [`most_answer`](StreamGuardLayer::most_answer). Dropping the body drops the upstream's.
//!
//! # Example
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::{BodyExt, Full};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//! use tower_spillway_core::{BodyEnd, BoxError, Class, Reading};
//! use tower_spillway_llm::{StreamGuardLayer, Vendor, VendorVerdictLayer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let client = |events: &'static str| {
//!     ServiceBuilder::new()
//!         .layer(StreamGuardLayer::new(Vendor::OpenAi))
//!         .layer(VendorVerdictLayer::new(Vendor::OpenAi))
//!         .service(service_fn(move |_: Request<()>| async move {
//!             let response = Response::builder().header("content-type", "text/event-stream");
//!             Ok::<_, BoxError>(response.body(Full::<Bytes>::from(events))?)
//!         }))
//! };
//!
//! // Overloaded before the first token: an ordinary 503.
//! let overloaded = client("data: {\"error\":{\"code\":\"server_is_overloaded\"}}\n\n");
//! let response = overloaded.oneshot(Request::new(())).await?;
//! assert_eq!(response.status(), 503);
//! assert_eq!(response.extensions().get().map(Reading::class), Some(Class::Transient));
//!
//! // Cut after the first token: told in the stream, and to the layers outside.
//! let cut = client("data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n");
//! let response = cut.oneshot(Request::new(())).await?;
//! let end = response.extensions().get::<BodyEnd>().cloned().ok_or("no end")?;
//! let body = response.into_body().collect().await?.to_bytes();
//! assert!(body.ends_with(b"\"code\":\"stream_ended_early\"}}\n\n"));
//! assert_eq!(end.get().and_then(Reading::reason), Some("stream_ended_early"));
//! # Ok(())
//! # }
//! ```

mod body;
mod dialect;
mod error;
mod event;
mod fault;
mod flow;
mod future;
mod layer;
mod limits;
mod record;
mod service;
mod sse;
mod timer;
mod usage;
mod watch;

pub use self::{
    body::GuardedBody,
    dialect::Dialect,
    error::{Break, StreamBroken},
    future::ResponseFuture,
    layer::StreamGuardLayer,
    limits::{Commit, StreamLimits},
    record::StreamUsage,
    service::StreamGuard,
};
pub use crate::media::is_event_stream;
