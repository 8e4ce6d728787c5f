//! A bound on the requests that are out at one target: a permit each, to the end of the response
//! body. An answer that is no success and at most 64 KiB long gives it back with its head: a
//! retrying layer may hold such an answer while it waits to send again.
//!
//! Put it in a target's stack, outside [`AttemptTimeoutLayer`](crate::attempt_timeout): a request
//! that waits for a permit has not been sent, so no attempt's time runs and no breaker counts it. A
//! permit that does not come in time ([`ready_within`](InFlightLayer::ready_within), at most until
//! the call's deadline) is a [`Refused`](crate::Refused), which is free: a failover goes on to the
//! next target.
//!
//! It waits in the call, not in `poll_ready`: a service that was polled ready and is not called, as
//! a failover keeps one, would sit on a permit; and in `poll_ready` there is no request yet, so no
//! deadline.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use http::{Request, Response};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//! use tower_spillway_core::{BoxError, Refusal, Refused, in_flight::InFlightLayer};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), BoxError> {
//! let layer = InFlightLayer::new(1)?;
//! let permits = layer.unnamed_permits();
//! let client = ServiceBuilder::new()
//!     .layer(layer)
//!     .service(service_fn(|_: Request<String>| async {
//!         Ok::<_, BoxError>(Response::new("an answer".to_string()))
//!     }));
//!
//! let response = client.clone().oneshot(Request::new(String::new())).await?;
//! // Its body has not been read: it is in flight still.
//! assert_eq!((permits.in_flight(), permits.limit()), (1, 1));
//! let error = client.clone().oneshot(Request::new(String::new())).await.unwrap_err();
//! assert_eq!(Refused::find(&*error).map(Refused::refusal), Some(Refusal::Overloaded));
//!
//! drop(response);
//! assert_eq!(permits.in_flight(), 0);
//! client.oneshot(Request::new(String::new())).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # HTTP/2
//!
//! A client such as hyper-util's sends all requests to an origin over one connection. Above the
//! number of streams that the server allows on it (100 is common) requests wait inside the client,
//! where the time limit of an attempt runs: what times out was never sent, and the breaker hears of
//! a failure that is not the target's. A bound at that number, outside the time limit, moves the
//! wait to here. Where more than that is to be out at once, share the load among several clients,
//! each with a connection, and a layer and a bound of its own.
//!
//! # Clone
//!
//! Clones of a layer and of its services share the permits. As a breaker does, a layer keeps permits
//! of their own for each target below a failover; [`InFlightLayer::with_permits`] shares them on
//! purpose.
//!
//! # Not http
//!
//! The type of the response body changes, to one that keeps the permit. Where responses have no
//! body, [`until_response`](InFlightLayer::until_response) gives the permit back with the response.

mod body;
mod future;
mod layer;
mod permits;
mod service;

pub use self::{
    body::PermitBody,
    future::{ToBodyEndFuture, ToResponseFuture},
    layer::{InFlightLayer, ToBodyEnd, ToResponse},
    permits::Permits,
    service::InFlight,
};
