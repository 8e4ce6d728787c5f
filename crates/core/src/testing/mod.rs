//! For tests of services and layers, under tokio's paused time.
//!
//! | module | what it holds |
//! |---|---|
//! | [`script`] | a service that answers, fails, delays or hangs as written, and counts |
//! | [`readiness`] | a service whose readiness is set by hand |
//! | [`contract`] | a probe that fails the test when `call` is made without its own readiness |
//! | [`retrying`] | checks of what every retrying layer keeps to |
//! | [`gate`] | a budget that counts what it is told |
//! | [`drops`] | a walker that drops a future at every await point |
//! | [`wall`] | a wall clock that stands still |
//! | [`clock`] | counted reads of tokio's clock |
//!
//! Randomness that does not vary is [`Chance::fixed`](crate::Chance::fixed), a stream that plays
//! the same twice [`Chance::seeded`](crate::Chance::seeded).
//!
//! # Example
//!
//! ```
//! use std::time::Duration;
//! use tower::{Service, ServiceBuilder, ServiceExt};
//! use tower_spillway_core::{
//!     Class, Failure, Detached, History, Outcome, RetryLayer, Verdict,
//!     testing::{contract::ReadyProbeLayer, script::{Script, Step}},
//! };
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() {
//! let upstream = Script::new([
//!     Step::fail(|| "down").after(Duration::from_millis(20)),
//!     Step::answer("up"),
//! ]);
//! let adapter = Detached(|out: Result<&&str, Failure<'_>>| {
//!     if out.is_ok() { Class::Success } else { Class::Transient }
//! });
//! let policy = |_: &History, _: &Outcome<'_, &str>| Verdict::Retry { after: Duration::from_millis(100) };
//! let client = ServiceBuilder::new()
//!     .layer(RetryLayer::new(policy).adapter(adapter))
//!     .layer(ReadyProbeLayer::new())
//!     .service(upstream.clone());
//!
//! assert_eq!(client.oneshot("ping").await.unwrap(), "up");
//! assert_eq!(upstream.times(), [Duration::ZERO, Duration::from_millis(120)]);
//! # }
//! ```

pub mod clock;
pub mod contract;
pub mod drops;
pub mod gate;
pub mod readiness;
pub mod retrying;
pub mod script;
pub mod wall;
