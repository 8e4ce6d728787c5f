//! The stack: the crates and a client, put together.
//!
//! Outermost first:
//!
//! ```text
//! CallLayer                          deadline; the record of the call
//!   IdempotencyKeyLayer              one key per call
//!     RetryBudgetLayer               all retries of all calls together
//!       FailoverService              the targets; each with its own address, key and model
//!         RetryLayer                 backoff drives: waits, sends again
//!           RetryAfterLayer          advises: what the server asked for; holds everybody
//!             CircuitBreakerLayer    refuses for free while a target is down; hears how streams end
//!               ClassifyLayer        the user's own hop rule, if there is one
//!                 (fresh)            after a timeout, a connection that was not open before
//!                   StreamGuardLayer a stream is held until its first content, and checked to its end
//!                     VendorVerdictLayer     what the vendor's error means
//!                       InFlightLayer        so many calls at one time
//!                         AttemptTimeoutLayer  each attempt has its limit
//!                           (hollow)           a success without an answer in it is none
//!                           WholeAnswerLayer   a plain answer counts once its last byte is here
//!                             client           hyper-util, rustls
//! ```
//!
//! # Example
//!
//! ```
//! use opus_to_gemini::{config::Config, pipeline::Pipeline};
//!
//! let config = Config::from_toml("[failover]\nsends = 2\n")?;
//! // Keys from wherever they are kept.
//! let pipeline = Pipeline::from_config(&config, "default", |_| Some("a-key".into()))?.build()?;
//! assert_eq!(pipeline.breakers().len(), 2);
//! # Ok::<(), opus_to_gemini::pipeline::BuildError>(())
//! ```

mod address;
mod builder;
mod client;
mod error;
mod fleet;
mod fresh;
mod hollow;
mod keyring;
mod member;
mod own;
mod policies;
mod prepare;
mod probe;
mod refusal;
mod secret;
mod service;
mod slots;
mod stack;
mod state;
mod trust;
mod upstream;
mod whole;

pub use self::{
    builder::Builder,
    error::BuildError,
    fleet::{Fleet, NoChain},
    member::Member,
    probe::Probing,
    service::{Pipeline, ResponseFuture},
    stack::{AnswerBody, ChatRequest, ChatResponse},
    upstream::Upstream,
    whole::{WholeAnswer, WholeAnswerLayer, WholeFuture},
};
pub(crate) use self::{hollow::PlainAnswer, secret::Secrets, whole::is_stream};
