//! The record of one call: legs, attempts, waits, deadline, advice.
//!
//! A [`Ledger`] handle rides in the request. The first layer that finds none opens one; a caller
//! may put its own in and keep a clone, which is the only record left after an `Err`:
//!
//! ```
//! use tower_spillway_core::{Carried, Ledger};
//!
//! let ledger = Ledger::new();
//! let request = Carried::new("hello").with_ledger(ledger.clone());
//! # let _ = request;
//! // ... after the call:
//! let report = ledger.report();
//! assert_eq!(report.attempts.len(), 0);
//! ```
//!
//! Each *leg* (all attempts of one call on one target) has a slot of its own, so two legs that
//! race do not mix. The handle that travels down carries which leg and attempt it belongs to and
//! whether a driver is above; nothing needs resetting, since the mark travels down only.

mod gates;
mod handle;
mod leg;
mod plan;
mod record;
mod report;
mod shared;
mod situation;

pub use self::{
    handle::{Ledger, LegMark, Part},
    plan::{LegPlan, Onward, TargetName},
    record::Abandoned,
    report::{Attempt, Fallback, Report},
};
pub(crate) use self::{
    leg::{Ended, Total},
    situation::Situation,
};
