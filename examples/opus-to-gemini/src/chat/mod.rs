//! One chat through the pipeline: the answer, or what went wrong, and the record.

mod ask;
mod error;
mod events;
mod read;
mod record;

pub(crate) use self::read::{error_in, message_of};
pub(crate) use self::record::dollars;
pub use self::{
    ask::{Answer, Asked, Chat, ask, ask_streaming},
    error::ChatError,
    record::{Record, Tokens},
};
