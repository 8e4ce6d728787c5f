//! The record of a call, the retry engine and the types that let separate tower layers act as one.
//!
//! Layers in separate crates meet in the call itself: a [`Ledger`] rides in the request. Of the
//! retrying layers of a leg the outermost drives, the others advise ([`drive`]); a policy is a pure
//! function of what happened ([`Policy`]); a budget grants each retry last of all ([`gate`]); and
//! every "no" gives the caller the original outcome.
//!
//! | module | what it holds |
//! |---|---|
//! | [`ledger`] | the record of one call and its report |
//! | [`drive`], [`retry`] | the engine, and a retrying layer of any policy |
//! | [`gate`] | what a budget implements |
//! | [`adapter`] | how layers see requests and responses, `http` or not |
//! | [`hint`] | what a server said about when to come back |
//! | [`keyed`] | state for each target or key, bounded |
//! | [`call`], [`attempt_timeout`], [`classify`] | three layers that every stack wants |
//! | [`in_flight`], [`idempotency_key`] | a bound on what is out at a target; one key for each call |
//! | `replay` (feature `body`) | request bodies that can be sent again |
//! | `grpc_status` (feature `body`) | a gRPC status that comes in trailers, read within the attempt |
//! | [`refused`], [`error`] | typed errors |

pub mod adapter;
pub mod attempt_timeout;
pub mod call;
pub mod chance;
pub mod classify;
pub mod clock;
pub mod drive;
pub mod error;
pub mod gate;
#[cfg(feature = "body")]
pub mod grpc_status;
pub mod hint;
pub mod idempotency_key;
pub mod in_flight;
pub mod keyed;
pub mod ledger;
pub mod metrics;
pub mod refused;
#[cfg(feature = "body")]
pub mod replay;
pub mod retry;
#[cfg(feature = "testing")]
pub mod testing;

mod body_end;
mod cause;
mod class;
mod outcome;
mod policy;
mod reading;
mod timer;
mod verdict;

#[cfg(feature = "body")]
pub use crate::replay::{ReplayBody, ReplayLayer};
pub use crate::{
    adapter::{
        Carried, Carry, Detached, ErrorReader, Http, MayCarry, Plain, Read, ReplayableBody, Resend,
        ResendTerms,
    },
    body_end::BodyEnd,
    cause::Cause,
    chance::Chance,
    class::Class,
    drive::{Drive, Engine},
    error::{BoxError, Classified, Failure, InvalidConfig, NotReplayable, TimeLimit, TimedOut},
    gate::{Gate, Grant},
    ledger::{Abandoned, Ledger, Report, TargetName},
    outcome::Outcome,
    policy::{History, Limits, Policy},
    reading::Reading,
    refused::{Refusal, Refused},
    retry::{Retry, RetryLayer},
    verdict::Verdict,
};

/// The example of the README runs.
#[doc = include_str!("../README.md")]
#[cfg(doctest)]
#[derive(Debug)]
pub struct Readme;
