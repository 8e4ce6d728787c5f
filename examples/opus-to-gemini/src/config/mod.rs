//! What a file can set: targets, chains, one table per policy, prices.
//!
//! A file says only what differs from its profile. All unknown keys and bad values are told of at
//! once, each with its line and the reason:
//!
//! ```
//! use opus_to_gemini::config::Config;
//!
//! let config = Config::from_toml(
//!     r#"
//!     profile = "batch"
//!
//!     [backoff]
//!     base = "250ms"
//!
//!     [targets.opus]
//!     model = "claude-opus-4-8"
//!     "#,
//! )?;
//! assert_eq!(config.backoff.base.as_millis(), 250);
//! assert_eq!(config.targets["opus"].model, "claude-opus-4-8");
//! // Of the profile:
//! assert_eq!(config.failover.sends, 6);
//!
//! let wrong = Config::from_toml("[breaker]\nfailures = 0\n").unwrap_err();
//! assert_eq!(wrong.to_string(), "line 2: breaker.failures must be at least 1");
//! # Ok::<(), opus_to_gemini::config::ConfigError>(())
//! ```

mod check;
mod duration;
mod error;
mod file;
mod gateway;
mod header;
mod kind;
mod merge;
mod policy;
mod print;
mod profile;
mod route;
mod speed;
mod target;
mod tls;
mod types;

pub(crate) use self::check::{holds_a_secret, is_address};
pub use self::{
    error::{ConfigError, Finding},
    gateway::{Gateway, LogFormat},
    header::HeaderFrom,
    policy::{
        Backoff, BackoffKind, Breaker, BreakerKind, Budget, BudgetKind, Commit, Failover,
        FailoverKind, IdempotencyKey, IdempotencyKeyKind, InFlight, InFlightKind, Probes, Refusals,
        RetryAfter, RetryAfterKind, Stream, Timeout, TimeoutKind, Verdict, VerdictKind,
    },
    route::Route,
    target::{Takes, Target},
    tls::{Roots, Tls},
    types::{Batch, Call, Config, Pool, PriceOf, Prices, Profile},
};
