//! A time limit for each attempt: to the response head, and to the last byte of the body.
//!
//! An attempt that runs out ends in a typed [`TimedOut`](crate::TimedOut), so that the layers
//! outside see a timeout as what it is: maybe processed, and not worth a second try here while
//! another target can serve.
//!
//! Limits may also travel with the request, as an [`AttemptLimits`] extension; they take the place
//! of the layer's.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use http::{Request, Response};
//! use tower::{Service, ServiceBuilder, ServiceExt};
//! use tower_spillway_core::{BoxError, TimedOut, attempt_timeout::AttemptTimeoutLayer};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let client = ServiceBuilder::new()
//!     .layer(AttemptTimeoutLayer::to_head(Duration::from_secs(8)))
//!     .service(tower::service_fn(|_: Request<String>| async {
//!         std::future::pending::<Result<Response<String>, BoxError>>().await
//!     }));
//!
//! let error = client.oneshot(Request::new(String::new())).await.unwrap_err();
//! let timed_out = error.downcast_ref::<TimedOut>().unwrap();
//! assert_eq!(timed_out.after(), Duration::from_secs(8));
//! # }
//! ```

mod body;
mod future;
mod layer;
mod service;

pub use self::{
    body::TimedBody,
    future::{HeadFuture, LastByteFuture},
    layer::{AttemptLimits, AttemptTimeoutLayer, ToHead, ToLastByte},
    service::AttemptTimeout,
};
