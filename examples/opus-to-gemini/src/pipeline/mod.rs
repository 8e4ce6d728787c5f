//! The stack: five crates and a client, put together.
//!
//! Outermost first:
//!
//! ```text
//! CallLayer                        deadline; the record of the call
//!   RetryBudgetLayer               all retries of all calls together
//!     FailoverService              Opus, then Gemini; each with its own address, key and model
//!       JitterBackoffLayer         drives: waits, sends again
//!         RetryAfterLayer          advises: what the server asked for
//!           CircuitBreakerLayer    refuses for free while a target is down
//!             AttemptTimeoutLayer  each attempt has its limit
//!               WholeAnswerLayer   a plain answer counts once its last byte is here
//!                 client           hyper-util, rustls
//! ```

mod builder;
mod client;
mod error;
mod fresh;
mod own;
mod policies;
mod prepare;
mod probe;
mod secret;
mod service;
mod slots;
mod stack;
mod upstream;
mod whole;

pub use self::{
    builder::Builder,
    error::BuildError,
    probe::Probing,
    service::Pipeline,
    stack::{AnswerBody, ChatRequest, ChatResponse},
    upstream::Upstream,
    whole::{WholeAnswer, WholeAnswerLayer, WholeFuture},
};
