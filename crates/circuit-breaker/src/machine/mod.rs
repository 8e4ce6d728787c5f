//! The breaker as a pure state machine: `(state, now, event) -> state`.
//!
//! No clock, no lock, no task. Time is whole nanoseconds from any origin, given with each event;
//! states are compared with it and nothing counts ticks, so a clock that jumps days ahead, stands
//! still or goes back needs no case of its own.

mod baseline;
mod closed;
mod half_open;
mod hands;
mod probing;
mod rules;
#[cfg(test)]
#[cfg(not(spillway_loom))]
pub(crate) mod tests;
mod view;
mod window;
mod words;

use std::sync::Arc;

use tower_spillway_core::Chance;

use self::{
    baseline::Baseline,
    closed::{Closed, Tripped},
    half_open::HalfOpen,
    window::Counts,
};
pub(crate) use self::{
    baseline::{PLACES, place},
    probing::Order,
    rules::{BILLION, Bad, BrownoutRule, ENDLESS, Most, Rules, THOUSAND, WindowRule, age},
    view::{Figures, View},
    window::EPOCHS,
    words::{Denied, Heard, Ticket, Transition, Why},
};
use crate::state::{State, TripReason};

/// Nanoseconds from an origin that the caller chose.
pub(crate) type Nanos = i64;

/// Trips are recent for ten minutes.
const RECENT: u64 = 600_000_000_000;

#[derive(Clone, Debug)]
enum Mode {
    Closed(Closed),
    Open { until: Nanos, reason: TripReason },
    HalfOpen(HalfOpen),
    ForcedOpen,
    Disabled,
    MetricsOnly(Closed),
}

/// See the [module docs](self).
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    rules: Arc<Rules>,
    mode: Mode,
    generation: u64,
    /// The first epoch of the next closed period.
    next_base: u64,
    baseline: Option<Baseline>,
    /// The open time of the next trip, before jitter and hints.
    scheduled: u64,
    reopenings: u32,
    trips: u64,
    /// Trips out of closed, each within [`RECENT`] of the one before.
    recent_trips: u32,
    last_trip: Option<Nanos>,
    probing: probing::Probing,
}

impl Machine {
    /// Closed at time 0.
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        // From 1: an empty bucket stands at 0.
        let closed = Closed::new(&rules, 1, 0);
        Self {
            mode: Mode::Closed(closed),
            // From 1, so that 0 can stand for "no generation" in the cell.
            generation: 1,
            next_base: 1,
            baseline: rules.brownout.map(Baseline::new),
            scheduled: rules.open_time,
            reopenings: 0,
            trips: 0,
            recent_trips: 0,
            last_trip: None,
            probing: probing::Probing::default(),
            rules,
        }
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Admits a call or not. At the end of the open time the first to ask begins the half-open
    /// period.
    pub(crate) fn acquire(
        &mut self,
        now: Nanos,
        chance: &Chance,
    ) -> (Result<Ticket, Denied>, Option<Transition>) {
        let plain = Ticket {
            generation: self.generation,
            probe: None,
        };
        match &mut self.mode {
            Mode::Closed(closed) => {
                if let Some(end) = closed.ramp_end {
                    if now >= end {
                        closed.ramp_end = None;
                    } else if !self.rules.ramp_admits(end, now, chance) {
                        return (Err(Denied::ramping(end)), None);
                    }
                }
                (Ok(plain), None)
            }
            Mode::Disabled | Mode::MetricsOnly(_) => (Ok(plain), None),
            Mode::ForcedOpen => (Err(Denied::FORCED), None),
            Mode::Open { until, reason } if now < *until => {
                (Err(Denied::open(*until, *reason)), None)
            }
            Mode::Open { reason, .. } => {
                let reason = *reason;
                if let Some(denied) = self.probing.denies(reason) {
                    return (Err(denied), None);
                }
                let lease = self.rules.lease(self.scheduled);
                let change = self.change(Mode::HalfOpen(HalfOpen::new(reason, Some(lease))), now);
                (self.probe(now), Some(change))
            }
            Mode::HalfOpen(half_open) => {
                let denied = self.probing.denies(half_open.reason);
                (denied.map_or_else(|| self.probe(now), Err), None)
            }
        }
    }

    fn probe(&mut self, now: Nanos) -> Result<Ticket, Denied> {
        let Mode::HalfOpen(half_open) = &mut self.mode else {
            return Err(Denied::FORCED);
        };
        let probe = half_open.admit(&self.rules, now)?;
        Ok(Ticket {
            generation: self.generation,
            probe: Some(probe),
        })
    }

    /// Hears how a call ended that took `elapsed` nanoseconds. One of an earlier generation is not
    /// heard.
    pub(crate) fn settle(
        &mut self,
        ticket: Ticket,
        heard: Heard,
        elapsed: u64,
        now: Nanos,
        chance: &Chance,
    ) -> Option<Transition> {
        if ticket.generation != self.generation {
            return None;
        }
        match &mut self.mode {
            Mode::Closed(closed) => {
                if let Heard::Held { time } = heard {
                    return Some(self.hold(time, now));
                }
                let baseline = &mut self.baseline;
                let tripped = closed.hear(&self.rules, baseline, heard, elapsed, now)?;
                Some(self.trip(tripped, hint(heard), now, chance))
            }
            Mode::MetricsOnly(closed) => {
                closed.hear(&self.rules, &mut self.baseline, heard, elapsed, now);
                None
            }
            Mode::HalfOpen(_) => self.hear_probe(ticket, heard, elapsed, now, chance),
            // Nothing was admitted in this generation, or nothing is heard.
            Mode::Open { .. } | Mode::ForcedOpen | Mode::Disabled => None,
        }
    }

    fn hear_probe(
        &mut self,
        ticket: Ticket,
        heard: Heard,
        elapsed: u64,
        now: Nanos,
        chance: &Chance,
    ) -> Option<Transition> {
        let timed = self.rules.timed();
        let slow = self.is_slow(elapsed);
        let Mode::HalfOpen(half_open) = &mut self.mode else {
            return None;
        };
        half_open.leave(ticket.probe);
        let good = match heard {
            Heard::Success => !slow,
            Heard::Failure { .. } | Heard::RateLimited { .. } => false,
            // A lost attempt is a slow one where slow ones matter.
            Heard::Lost if timed => false,
            Heard::Lost | Heard::Ignored => return None,
            Heard::Held { time } => {
                half_open.bad(&self.rules);
                self.grow();
                return Some(self.hold(time, now));
            }
        };
        if good {
            return half_open
                .good(&self.rules)
                .then(|| self.close(now, self.rules.ramp));
        }
        if !half_open.bad(&self.rules) {
            return None;
        }
        self.grow();
        let drawn = self.rules.jittered(self.scheduled, chance);
        let time = drawn.max(self.rules.bounded(hint(heard)));
        Some(self.open(TripReason::ProbeFailed, time, now))
    }

    /// Whether a call that took so long is slow for some rule.
    pub(crate) fn is_slow(&self, elapsed: u64) -> bool {
        self.fast_within().is_some_and(|most| elapsed > most)
    }

    /// A call is fast for every rule within this; `None` if the time does not matter.
    fn fast_within(&self) -> Option<u64> {
        let learnt = self.baseline.as_ref().and_then(Baseline::limit);
        match (self.rules.slow_over(), learnt) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn grow(&mut self) {
        self.scheduled = self.rules.next_open_time(self.scheduled);
        self.reopenings = self.reopenings.saturating_add(1);
    }

    /// Opens for the scheduled time; a hint lengthens it.
    fn trip(&mut self, tripped: Tripped, hint: u64, now: Nanos, chance: &Chance) -> Transition {
        let drawn = self.rules.jittered(self.scheduled, chance);
        let time = drawn.max(self.rules.bounded(hint));
        let mut change = self.open(tripped.reason, time, now);
        change.calls = tripped.counts.calls;
        change.bad = tripped.counts.bad;
        change
    }

    /// Opens for the time that the target named, exactly.
    fn hold(&mut self, time: u64, now: Nanos) -> Transition {
        self.open(TripReason::Held, self.rules.bounded(time), now)
    }

    fn open(&mut self, reason: TripReason, time: u64, now: Nanos) -> Transition {
        self.trips = self.trips.saturating_add(1);
        if matches!(self.mode, Mode::Closed(_)) {
            let recent = self
                .last_trip
                .is_some_and(|last| now.saturating_sub(last) <= RECENT as i64);
            self.recent_trips = if recent {
                self.recent_trips.saturating_add(1)
            } else {
                1
            };
            self.last_trip = Some(now);
        }
        let until = now.saturating_add_unsigned(time);
        let mut change = self.change(Mode::Open { until, reason }, now);
        change.open_for = Some(time);
        change
    }

    fn close(&mut self, now: Nanos, ramp: u64) -> Transition {
        self.scheduled = self.rules.open_time;
        self.reopenings = 0;
        let end = (ramp > 0).then(|| now.saturating_add_unsigned(ramp));
        self.enter(now, |mut closed| {
            closed.ramp_end = end;
            Mode::Closed(closed)
        })
    }

    /// Enters a mode that keeps counts.
    fn enter(&mut self, now: Nanos, mode: impl FnOnce(Closed) -> Mode) -> Transition {
        let base = self.base_after(now);
        let closed = Closed::new(&self.rules, base, now);
        self.change(mode(closed), now)
    }

    /// The first epoch that no count so far can have.
    fn base_after(&self, now: Nanos) -> u64 {
        match &self.mode {
            Mode::Closed(closed) | Mode::MetricsOnly(closed) => closed.next_base(&self.rules, now),
            _ => self.next_base,
        }
    }

    fn change(&mut self, to: Mode, now: Nanos) -> Transition {
        self.next_base = self.base_after(now);
        let from = std::mem::replace(&mut self.mode, to);
        self.generation += 1;
        let counts = match &from {
            Mode::Closed(closed) => Counts {
                calls: u64::from(closed.run),
                bad: u64::from(closed.run),
            },
            Mode::HalfOpen(half_open) => Counts {
                calls: u64::from(half_open.successes) + u64::from(half_open.failures),
                bad: u64::from(half_open.failures),
            },
            _ => Counts::default(),
        };
        Transition {
            from: from.state(),
            to: self.mode.state(),
            generation: self.generation,
            reason: self.mode.reason(),
            open_for: None,
            calls: counts.calls,
            bad: counts.bad,
        }
    }
}

/// What the server asked for.
fn hint(heard: Heard) -> u64 {
    match heard {
        Heard::Failure { hint } | Heard::RateLimited { hint } => hint,
        _ => 0,
    }
}

impl Mode {
    fn state(&self) -> State {
        match self {
            Self::Closed(_) => State::Closed,
            Self::Open { .. } => State::Open,
            Self::HalfOpen(_) => State::HalfOpen,
            Self::ForcedOpen => State::ForcedOpen,
            Self::Disabled => State::Disabled,
            Self::MetricsOnly(_) => State::MetricsOnly,
        }
    }

    fn reason(&self) -> Option<TripReason> {
        match self {
            Self::Open { reason, .. } => Some(*reason),
            Self::HalfOpen(half_open) => Some(half_open.reason),
            _ => None,
        }
    }
}
