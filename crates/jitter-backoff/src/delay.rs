//! What jitter is drawn from, and who says so.

use std::{fmt, time::Duration};

use tower_spillway_core::{History, Outcome};

use crate::Schedule;

/// What the delay before one send is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    pub(crate) base: Duration,
    pub(crate) ceiling: Duration,
    pub(crate) cap: Duration,
}

impl Delay {
    /// A ceiling that is its own base, without a cap.
    pub fn new(ceiling: Duration) -> Self {
        Self {
            base: ceiling,
            ceiling,
            cap: Duration::MAX,
        }
    }

    /// Where [`Decorrelated`](crate::Jitter::Decorrelated) jitter begins.
    #[must_use]
    pub fn base(mut self, base: Duration) -> Self {
        self.base = base;
        self
    }

    /// What no drawn delay passes.
    #[must_use]
    pub fn cap(mut self, cap: Duration) -> Self {
        self.cap = cap;
        self
    }
}

impl From<Duration> for Delay {
    fn from(ceiling: Duration) -> Self {
        Self::new(ceiling)
    }
}

/// Says what the delay before the next send is drawn from: a [`Schedule`], or a function
/// ([`JitterBackoff::from_fn`](crate::JitterBackoff::from_fn)).
pub trait Delays<Res> {
    /// After this outcome.
    fn delay(&self, past: &History, outcome: &Outcome<'_, Res>) -> Delay;
}

impl<Res> Delays<Res> for Schedule {
    fn delay(&self, past: &History, _outcome: &Outcome<'_, Res>) -> Delay {
        // A streak of 0 is an outcome with a hint: the schedule starts again at its base.
        self.at(past.streak.saturating_sub(1))
    }
}

impl Schedule {
    /// What the delay of a step is drawn from. Steps count from 0.
    pub(crate) fn at(&self, step: u32) -> Delay {
        Delay {
            base: self.ceiling(0),
            ceiling: self.ceiling(step),
            cap: self.cap(),
        }
    }
}

/// A function as a schedule. See [`JitterBackoff::from_fn`](crate::JitterBackoff::from_fn).
#[derive(Clone, Copy)]
pub struct FromFn<F>(pub(crate) F);

impl<Res, F, D> Delays<Res> for FromFn<F>
where
    F: Fn(&History, &Outcome<'_, Res>) -> D,
    D: Into<Delay>,
{
    fn delay(&self, past: &History, outcome: &Outcome<'_, Res>) -> Delay {
        (self.0)(past, outcome).into()
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FromFn")
            .field(&std::any::type_name::<F>())
            .finish()
    }
}
