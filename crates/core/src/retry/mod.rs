//! A retrying layer of any [`Policy`](crate::Policy).
//!
//! The ready-made policies (`JitterBackoffLayer`, `RetryAfterLayer`) are this with a policy inside;
//! use it for one of your own. With the feature `tower` the same policies serve `tower`'s own retry,
//! through `TowerPolicy`.
//!
//! # Clone
//!
//! Clones of the service share the policy. All state of a call is in the call.

mod layer;
mod service;

pub use self::{layer::RetryLayer, service::Retry};
#[cfg(feature = "tower")]
pub use crate::drive::TowerPolicy;
