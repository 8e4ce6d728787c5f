//! Reads what a vendor answered, and says so to the layers outside.
//!
//! # Overview
//!
//! A status alone does not decide for an LLM vendor: a 429 may be dead for a month, a 400 may be an
//! empty account. [`VendorVerdictLayer`] looks into the bodies of answers, judges them by
//! [`Rules`](crate::Rules), and puts a [`Reading`](tower_spillway_core::Reading) in the response's
//! extensions; every layer outside goes by it. It stands in a target's own stack, outside its
//! timeout and inside everything else.
//!
//! | answer | what is read |
//! |---|---|
//! | not 2xx | at most 64 KiB |
//! | 2xx of JSON, HTML, text or no type | until there is a choice in it, at most 64 KiB |
//! | 2xx of another type: `text/event-stream`, gRPC | nothing |
//! | compressed (`content-encoding`) | nothing: the status decides |
//!
//! # The body comes back unchanged
//!
//! The same frames, data and trailers, the same `size_hint`; what is longer streams on; a body that
//! fails while it is read gives what it gave, then its error. One narrowing: the upper bound of a
//! body that was read to its end is known, so that a retrying layer outside may hold it. The type
//! changes to [`PeekedBody`].
//!
//! A body that was begun is kept in a box: a pinned body cannot be moved out of the future that
//! read it. A stream is never boxed.
//!
//! # A body that stalls
//!
//! Reading ends after [`read_within`](VendorVerdictLayer::read_within) (5 s): the answer is then
//! judged by what came, and the rest streams on.
//!
//! A 2xx whose body fails before there is a choice in it is read as its error is (Transient): nobody
//! has got the answer yet, so it can be sent again.
//!
//! # A target that serves nobody
//!
//! [`TargetDown`](tower_spillway_core::Class::TargetDown) needs a person. One warning event says
//! what to do (key, credit, quota, model, address); no other like it for this target until it has
//! succeeded again.

mod body;
mod future;
mod layer;
mod peek;
mod scan;
mod service;

pub use self::{
    body::PeekedBody, future::ResponseFuture, layer::VendorVerdictLayer, service::VendorVerdict,
};
