//! What a machine shows without an event.

use super::{Machine, Mode, Nanos};
use crate::state::{State, TripReason};

/// For people and tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) state: State,
    pub(crate) generation: u64,
    pub(crate) reason: Option<TripReason>,
    pub(crate) until: Option<Nanos>,
    pub(crate) ramp_end: Option<Nanos>,
    pub(crate) run: u32,
    /// What the first rule over a window sees.
    pub(crate) calls: u64,
    pub(crate) bad: u64,
    pub(crate) out: usize,
    pub(crate) successes: u32,
    pub(crate) failures: u32,
    pub(crate) reopenings: u32,
    pub(crate) trips: u64,
    pub(crate) slow_over: Option<u64>,
}

/// What the concurrent cell answers from without the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) state: State,
    pub(crate) reason: Option<TripReason>,
    /// The end of the open time, or of the ramp of a closed period.
    pub(crate) until: Option<Nanos>,
    /// When the closed period began.
    pub(crate) since: Nanos,
    /// Its first epoch.
    pub(crate) base: u64,
    /// A success within this is fast for every rule.
    pub(crate) fast_within: u64,
}

impl Machine {
    pub(crate) fn view(&self, now: Nanos) -> View {
        let mut view = View {
            state: self.mode.state(),
            generation: self.generation,
            reason: self.mode.reason(),
            until: None,
            ramp_end: None,
            run: 0,
            calls: 0,
            bad: 0,
            out: 0,
            successes: 0,
            failures: 0,
            reopenings: self.reopenings,
            trips: self.trips,
            slow_over: self.fast_within(),
        };
        match &self.mode {
            Mode::Closed(closed) | Mode::MetricsOnly(closed) => {
                view.run = closed.run;
                view.ramp_end = closed.ramp_end.filter(|end| now < *end);
                let counts = closed.counts(&self.rules, 0, now);
                view.calls = counts.calls;
                view.bad = counts.bad;
            }
            Mode::ForcedOpen | Mode::Disabled => (),
            Mode::Open { until, .. } if now < *until => view.until = Some(*until),
            Mode::Open { .. } => view.state = State::HalfOpen,
            Mode::HalfOpen(half_open) => {
                view.out = half_open.out();
                view.successes = half_open.successes;
                view.failures = half_open.failures;
            }
        }
        view
    }

    /// The figures now. The state is without a clock: an open one stays open here until a call is
    /// admitted.
    pub(crate) fn figures(&self) -> Figures {
        let mut figures = Figures {
            state: self.mode.state(),
            reason: self.mode.reason(),
            until: None,
            since: 0,
            base: 0,
            fast_within: 0,
        };
        match &self.mode {
            Mode::Closed(closed) | Mode::MetricsOnly(closed) => {
                figures.until = closed.ramp_end;
                figures.since = closed.since;
                figures.base = closed.base;
                figures.fast_within = self.counted_apart();
            }
            Mode::Open { until, .. } => figures.until = Some(*until),
            Mode::HalfOpen(_) | Mode::ForcedOpen | Mode::Disabled => (),
        }
        figures
    }

    /// A success within this may be counted apart, and told later.
    fn counted_apart(&self) -> u64 {
        // While a baseline is learnt every call is told at once.
        let learning = self
            .baseline
            .as_ref()
            .is_some_and(|baseline| baseline.limit().is_none());
        if learning {
            return 0;
        }
        self.fast_within().unwrap_or(u64::MAX)
    }

    // -- what was counted apart ---------------------------------------------------------------

    /// A success ended the run of failures.
    pub(crate) fn end_run(&mut self) {
        if let Mode::Closed(closed) | Mode::MetricsOnly(closed) = &mut self.mode {
            closed.run = 0;
        }
    }

    /// Successes of one epoch that were fast for every rule.
    pub(crate) fn add_fast(&mut self, span: usize, epoch: u64, calls: u64) {
        if let Mode::Closed(closed) | Mode::MetricsOnly(closed) = &mut self.mode {
            closed.add_fast(&self.rules, span, epoch, calls);
        }
    }

    /// Successes that were fast for every rule, by how long they took.
    pub(crate) fn add_times(&mut self, place: usize, calls: u64, now: Nanos) {
        let suspect = match &self.mode {
            Mode::Closed(closed) | Mode::MetricsOnly(closed) => closed.suspect(&self.rules, now),
            // Counted before it left that state; too few to matter.
            _ => true,
        };
        if let Some(baseline) = &mut self.baseline {
            baseline.fast(place, calls, suspect);
        }
    }
}
