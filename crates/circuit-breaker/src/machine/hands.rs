//! What is done to a breaker by hand.

use tower_spillway_core::Chance;

use super::{HalfOpen, Machine, Mode, Nanos, Transition, baseline::Baseline};
use crate::state::TripReason;

impl Machine {
    /// Opens until somebody says otherwise; `None` if it is so already.
    pub(crate) fn force_open(&mut self, now: Nanos) -> Option<Transition> {
        match self.mode {
            Mode::ForcedOpen => None,
            _ => Some(self.change(Mode::ForcedOpen, now)),
        }
    }

    /// Opens for so long; then probes as usual.
    pub(crate) fn force_open_for(&mut self, time: u64, now: Nanos) -> Transition {
        self.open(TripReason::ByHand, time, now)
    }

    /// Opens for the time that a rule would; from half-open that is a failed reopening.
    pub(crate) fn trip_by_hand(&mut self, now: Nanos, chance: &Chance) -> Transition {
        if matches!(self.mode, Mode::HalfOpen(_)) || self.is_over(now) {
            self.grow();
        }
        let time = self.rules.jittered(self.scheduled, chance);
        self.open(TripReason::ByHand, time, now)
    }

    /// Lets probes find out at once. A probe keeps its slot for as long as it takes: nobody said
    /// how long the target was to be left alone.
    pub(crate) fn half_open(&mut self, now: Nanos) -> Option<Transition> {
        let reason = match &self.mode {
            Mode::HalfOpen(_) => return None,
            Mode::Open { reason, .. } => *reason,
            _ => TripReason::ByHand,
        };
        let half_open = if self.probing.any() {
            HalfOpen::watched(reason, self.recent_trips)
        } else {
            HalfOpen::new(reason, None)
        };
        Some(self.change(Mode::HalfOpen(half_open), now))
    }

    /// Closes; `None` if it is closed already.
    pub(crate) fn force_close(&mut self, now: Nanos) -> Option<Transition> {
        match self.mode {
            Mode::Closed(_) => None,
            _ => Some(self.close(now, 0)),
        }
    }

    /// Makes it as new. Calls that are under way are not heard, whatever the state was.
    pub(crate) fn reset(&mut self, now: Nanos) -> Transition {
        self.trips = 0;
        self.recent_trips = 0;
        self.last_trip = None;
        self.baseline = self.rules.brownout.map(Baseline::new);
        self.close(now, 0)
    }

    /// Admits everything and hears nothing; `None` if it is so already.
    pub(crate) fn disable(&mut self, now: Nanos) -> Option<Transition> {
        match self.mode {
            Mode::Disabled => None,
            _ => Some(self.change(Mode::Disabled, now)),
        }
    }

    /// Admits everything and counts, from nothing on; `None` if it is so already.
    pub(crate) fn metrics_only(&mut self, now: Nanos) -> Option<Transition> {
        match self.mode {
            Mode::MetricsOnly(_) => None,
            _ => Some(self.enter(now, Mode::MetricsOnly)),
        }
    }

    /// Open, and the open time has ended.
    fn is_over(&self, now: Nanos) -> bool {
        matches!(self.mode, Mode::Open { until, .. } if now >= until)
    }
}
