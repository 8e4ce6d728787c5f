//! The outermost layer: deadline, cap on all sends, and the record of the call.
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use tower::{Service, ServiceBuilder, ServiceExt};
//! use tower_spillway_core::{BoxError, Carried, Class, Failure, Ledger, Plain, TimedOut, call::CallLayer};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let adapter = Plain(|r: Result<&(), Failure<'_>>| {
//!     if r.is_ok() { Class::Success } else { Class::Transient }
//! });
//! let client = ServiceBuilder::new()
//!     .layer(CallLayer::new().deadline(Duration::from_secs(10)).adapter(adapter))
//!     .service(tower::service_fn(|_: Carried<&str>| async {
//!         std::future::pending::<Result<(), BoxError>>().await
//!     }));
//!
//! let ledger = Ledger::new();
//! let request = Carried::new("hangs").with_ledger(ledger.clone());
//! let error = client.oneshot(request).await.unwrap_err();
//!
//! assert!(error.is::<TimedOut>());
//! assert_eq!(ledger.report().attempts[0].class, Class::Cancelled);
//! # }
//! ```

mod future;
mod layer;
mod service;

pub use self::{future::ResponseFuture, layer::CallLayer, service::Call};
