//! The shared hold: one "come back in 60 s" holds everybody, not only the call that heard it.
//!
//! A throttled answer that names a wait (a 429 with `Retry-After`; on a success only an IETF
//! `RateLimit` with `r=0`) holds its key until then. While a key is held its calls are not sent:
//! they are refused with [`Refused`](tower_spillway_core::Refused), and the retrying layer that
//! drives comes back when the hold is over. That is no send: it counts as no attempt and asks no
//! budget. Below a failover the call goes to the next target at once where the wait is longer than
//! the target's patience.
//!
//! - A later answer can only lengthen a hold; at most [`HoldConfig::max_hold`] from its own time.
//! - Nobody comes early, and those who are held come back spread over as much as jitter would add
//!   to the hint: up to half of it, at most 5 s. One who finds the hold extended waits again.
//! - What is left must fit: not past the call's deadline or total wait, not above
//!   [`longest_wait`](crate::RetryAfterLayer::longest_wait). Else the refusal goes to the caller at
//!   once and says when to come back.
//! - The key is the target's name, as a failover above puts it in the call; or what a function
//!   finds in the request ([`keyed_hold`](crate::RetryAfterLayer::keyed_hold)).
//!
//! It needs requests that carry a [`Ledger`](tower_spillway_core::Ledger): `http` ones, or
//! [`Carried`](tower_spillway_core::Carried).
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use http::{Request, Response};
//! use tokio::time::Instant;
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//! use tower_retry_after::{RetryAfterLayer, hold::{HoldConfig, HoldKey}};
//! use tower_spillway_core::BoxError;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), BoxError> {
//! let layer = RetryAfterLayer::new().hold(HoldConfig::new())?;
//! let hold = layer.hold_handle().clone();
//! let opened = Instant::now();
//! let client = ServiceBuilder::new()
//!     .layer(layer)
//!     .service(service_fn(move |_: Request<String>| async move {
//!         let early = opened.elapsed() < Duration::from_secs(20);
//!         let response = Response::builder().status(if early { 429 } else { 200 });
//!         Ok::<_, BoxError>(response.header("retry-after", "20").body(String::new())?)
//!     }));
//!
//! // Ten calls at once; all wait for the first one's answer, none is sent to be told the same.
//! let first = tokio::spawn(client.clone().oneshot(Request::new(String::new())));
//! tokio::task::yield_now().await;
//! assert!(hold.retry_in(HoldKey::UNNAMED).is_some());
//! for _ in 0..10 {
//!     assert_eq!(client.clone().oneshot(Request::new(String::new())).await?.status(), 200);
//! }
//! assert_eq!(first.await??.status(), 200);
//! # Ok(())
//! # }
//! ```
//!
//! # Cost
//!
//! While nobody is held: one atomic load for each call and each poll, no clock read, no
//! allocation.

mod cell;
mod config;
mod future;
mod key;
mod service;
mod shared;
mod sync;

pub(crate) use self::service::Settings;
pub use self::{
    config::HoldConfig,
    future::HeldFuture,
    key::{ByRequest, ByTarget, HoldKey, KeyOf},
    service::Held,
    shared::SharedHold,
};
