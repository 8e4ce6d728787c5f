//! A file of prompts, worked off through outages and restarts.
//!
//! | part | what it does |
//! |---|---|
//! | [`Item`] | one line of the input: a prompt, and a key that stays the same |
//! | [`Journal`] | what is done, on disk as soon as it is; put in the order of the input at the end |
//! | [`run()`] | the queue: so many items at one time, and back in again while vendors are down |
//!
//! An item that ends because the vendors could not serve it now (a hint too long, attempts or
//! budget exhausted, a deadline, everybody refuses) goes back into the queue: not before the time
//! that it was told, and with a growing jittered delay. While every target refuses nothing is
//! started; then one item at a time finds out, until one is answered.

mod item;
mod journal;
mod lock;
mod outcome;
mod queue;
mod run;

pub use self::{
    item::{BadLine, Item, items},
    journal::{Journal, JournalError},
    outcome::{Failed, Outcome},
    run::{Progress, Summary, run},
};
