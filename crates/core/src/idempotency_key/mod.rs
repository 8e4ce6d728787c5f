//! One `Idempotency-Key` for each call, the same on every attempt, hop and requeue
//! (draft-ietf-httpapi-idempotency-key-header).
//!
//! Put it outside everything that copies requests: each attempt then carries the key of its call,
//! and a server that honours keys does the work once. With
//! [`Http::honours_idempotency_key`](crate::Http::honours_idempotency_key), or the same setter of a
//! failover's target, a request that has a key may be sent again although it may have been
//! processed.
//!
//! A key that the caller set is kept, so that a call that is put back in a queue is still the same
//! one; an empty one counts as none.
//!
//! # Example
//!
//! ```
//! use http::{HeaderValue, Request, Response};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//! use tower_spillway_core::{BoxError, idempotency_key::IdempotencyKeyLayer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! let echo = service_fn(|request: Request<String>| async move {
//!     let key = request.headers().get("idempotency-key").cloned();
//!     Ok::<_, BoxError>(Response::new(key))
//! });
//!
//! // 128 random bits.
//! let client = ServiceBuilder::new().layer(IdempotencyKeyLayer::new()).service(echo);
//! let key = client.clone().oneshot(Request::new(String::new())).await?.into_body();
//! assert_eq!(key.unwrap().len(), 36);
//!
//! // The caller's own.
//! let mut request = Request::new(String::new());
//! request.headers_mut().insert("idempotency-key", HeaderValue::from_static("order-17"));
//! assert_eq!(client.oneshot(request).await?.into_body().unwrap(), "order-17");
//!
//! // Made of the request.
//! let of_body = |request: &Request<String>| {
//!     HeaderValue::from_str(request.body()).unwrap_or(HeaderValue::from_static(""))
//! };
//! let client = ServiceBuilder::new().layer(IdempotencyKeyLayer::made_by(of_body)).service(echo);
//! let key = client.clone().oneshot(Request::new("item-3".to_string())).await?.into_body();
//! assert_eq!(key.unwrap(), "item-3");
//! // One that is no key is an error: nothing is sent.
//! assert!(client.oneshot(Request::new(String::new())).await.is_err());
//! # Ok(())
//! # }
//! ```

mod error;
mod future;
mod layer;
mod make;
mod service;

pub use self::{
    error::InvalidIdempotencyKey,
    future::ResponseFuture,
    layer::IdempotencyKeyLayer,
    make::{MakeKey, RandomKey},
    service::IdempotencyKey,
};
