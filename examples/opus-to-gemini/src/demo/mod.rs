//! One incident, played against three clients.
//!
//! | client | what it does |
//! |---|---|
//! | [`Kind::TryOther`] | asks Opus, and Gemini when that fails: section 4 of the article |
//! | [`Kind::Breaker`] | the same behind the article's breakers (5 failures / 30 s, 3 / 60 s): section 5 |
//! | [`Kind::Stack`] | the pipeline of this crate, profile interactive |
//!
//! Each has two fake vendors to itself, which do the same at the same times: the latencies are
//! drawn from one seed. Every duration is divided by [`Settings::speed`] when it is played, and
//! multiplied again in what is reported. [`Played`] holds the report of every call and both
//! vendors' logs; the table is computed from it, and so it is from its JSON.

mod article;
mod client;
mod figures;
mod play;
mod played;
mod settings;
mod table;
mod timeline;

pub use self::{
    figures::{Figures, Quantiles, Used},
    play::{DemoError, Tick, play},
    played::{Attempt, Call, Change, Kind, Played, Request, Run},
    settings::{Phase, Settings},
};
