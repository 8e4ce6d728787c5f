//! A retrying layer of any [`Policy`](crate::Policy).
//!
//! The ready-made policies (`JitterBackoffLayer`, `RetryAfterLayer`) are this with a policy inside;
//! use it for one of your own.
//!
//! # Clone
//!
//! Clones of the service share the policy. All state of a call is in the call.

mod layer;
mod service;

pub use self::{layer::RetryLayer, service::Retry};
