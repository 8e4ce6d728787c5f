//! The word that says what a breaker is in.

use crate::{
    machine::Figures,
    state::{State, TripReason},
};

/// The low bits of the word hold what it is in, the others the generation.
const TAG_BITS: u32 = 8;
pub(super) const TAG_MASK: u64 = (1 << TAG_BITS) - 1;

const CLOSED: u64 = 0;
const RAMPING: u64 = 1;
const HALF_OPEN: u64 = 2;
const FORCED_OPEN: u64 = 3;
const DISABLED: u64 = 4;
const METRICS_ONLY: u64 = 5;
/// The figures are being written: only the lock knows.
pub(super) const CHANGING: u64 = 6;
/// Open tags say why, so that a refusal can too.
const OPEN: [(u64, TripReason); 8] = [
    (8, TripReason::Consecutive),
    (9, TripReason::Rate),
    (10, TripReason::RateOfLast),
    (11, TripReason::Slow),
    (12, TripReason::Brownout),
    (13, TripReason::Held),
    (14, TripReason::ProbeFailed),
    (15, TripReason::ByHand),
];

/// What the word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Closed,
    Ramping,
    HalfOpen,
    ForcedOpen,
    Disabled,
    MetricsOnly,
    Open(TripReason),
    Changing,
}

pub(super) fn encode(generation: u64, figures: &Figures) -> u64 {
    let tag = match figures.state {
        State::Closed if figures.until.is_some() => RAMPING,
        State::Closed => CLOSED,
        State::HalfOpen => HALF_OPEN,
        State::ForcedOpen => FORCED_OPEN,
        State::Disabled => DISABLED,
        State::MetricsOnly => METRICS_ONLY,
        State::Open => OPEN
            .iter()
            .find(|(_, reason)| Some(*reason) == figures.reason)
            .map_or(CHANGING, |(tag, _)| *tag),
    };
    (generation << TAG_BITS) | tag
}

/// Plainly closed.
#[inline]
pub(super) fn closed_in(generation: u64) -> u64 {
    (generation << TAG_BITS) | CLOSED
}

/// The generation, if it is plainly closed.
#[inline]
pub(super) fn closed(word: u64) -> Option<u64> {
    (word & TAG_MASK == CLOSED).then_some(word >> TAG_BITS)
}

/// What it says, and the generation.
pub(super) fn decode(word: u64) -> (Word, u64) {
    let says = match word & TAG_MASK {
        CLOSED => Word::Closed,
        RAMPING => Word::Ramping,
        HALF_OPEN => Word::HalfOpen,
        FORCED_OPEN => Word::ForcedOpen,
        DISABLED => Word::Disabled,
        METRICS_ONLY => Word::MetricsOnly,
        tag => OPEN
            .iter()
            .find(|(open, _)| *open == tag)
            .map_or(Word::Changing, |(_, reason)| Word::Open(*reason)),
    };
    (says, word >> TAG_BITS)
}
