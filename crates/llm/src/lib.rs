//! Reads how LLM vendors say "later", "never" and "not here", makes requests fit a target, and counts
//! tokens and cost.
//!
//! | module | what it holds |
//! |---|---|
//! | [`verdict`] | [`VendorVerdictLayer`]: looks into answers and puts a `Reading` on them |
//! | [`stream`] | [`StreamGuardLayer`]: holds a stream until there is something in it, checks it to its end |
//! | [`rules`] | what an answer means, as data: one table per vendor |
//! | [`profile`] | [`TargetProfile`]: what a target takes, and how a request is made to fit |
//! | [`cost`] | [`Usage`], [`Price`], [`Cost`] |
//!
//! # Example
//!
//! Anthropic reports an empty account as a 400. The layer says what it is, so that a failover goes
//! to the next target instead of giving the caller an error that is not the caller's.
//!
//! ```
//! use http::{Request, Response, StatusCode};
//! use http_body_util::{BodyExt, Full};
//! use tower::{ServiceBuilder, ServiceExt, service_fn};
//! use tower_spillway_core::{BoxError, Class, Reading};
//! use tower_spillway_llm::{Vendor, VendorVerdictLayer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! const BODY: &str = r#"{"error":{"code":"invalid_request_error","type":"invalid_request_error",
//!     "message":"Your credit balance is too low to access the Anthropic API."}}"#;
//!
//! let client = ServiceBuilder::new()
//!     .layer(VendorVerdictLayer::new(Vendor::AnthropicCompat))
//!     .service(service_fn(|_: Request<String>| async {
//!         let mut response = Response::new(Full::<bytes::Bytes>::from(BODY));
//!         *response.status_mut() = StatusCode::BAD_REQUEST;
//!         Ok::<_, BoxError>(response)
//!     }));
//!
//! let response = client.oneshot(Request::new(String::new())).await?;
//!
//! let reading = response.extensions().get::<Reading>().unwrap();
//! assert_eq!(reading.class(), Class::TargetDown);
//! assert_eq!(reading.reason(), Some("credit_balance_too_low"));
//! // The body was read, and is there.
//! assert_eq!(response.into_body().collect().await?.to_bytes(), BODY);
//! # Ok(())
//! # }
//! ```

mod alarm;
pub mod cost;
mod media;
pub mod profile;
pub mod rules;
mod said;
pub mod stream;
pub mod verdict;

pub use crate::{
    cost::{Cost, Price, PriceTable, Usage},
    profile::{Fields, NotInMemory, TargetProfile},
    rules::{Answer, Remedy, Rule, Rules, Ruling, Subclass, UnknownVendor, Vendor},
    said::Said,
    stream::{
        Break, Commit, Dialect, GuardedBody, StreamBroken, StreamGuard, StreamGuardLayer,
        StreamLimits, StreamUsage,
    },
    verdict::{PeekedBody, VendorVerdict, VendorVerdictLayer},
};

/// The README: its example runs.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
#[derive(Debug)]
pub struct Readme;
