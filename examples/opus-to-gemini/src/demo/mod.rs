//! An incident, played against the stack.
//!
//! Two fake vendors, one pipeline, and calls that come at a steady pace while Anthropic throttles,
//! fails, hangs and recovers. Every duration is divided by [`Settings::speed`] when it is played,
//! and multiplied again in what is reported.

mod incident;
mod phase;
mod settings;
mod table;
mod timeline;

pub use self::{
    incident::{DemoError, Incident, play},
    phase::{Phase, Played},
    settings::Settings,
    table::HEADER,
    timeline::Change,
};
