//! One chat through the pipeline: the answer, or what went wrong, and the record.

mod ask;
mod error;
mod read;
mod record;

pub use self::{
    ask::{Answer, Asked, Chat, ask},
    error::ChatError,
    record::{Record, Tokens},
};
