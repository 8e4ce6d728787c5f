//! The breaker as a pure state machine: `(state, now, event) -> state`.
//!
//! No clock, no lock, no task. Time is whole nanoseconds from any origin, given with each event;
//! states are compared with it and nothing counts ticks, so a clock that jumps days ahead, stands
//! still or goes back needs no case of its own.

mod half_open;
mod rules;
#[cfg(test)]
mod tests;

use tower_spillway_core::Chance;

use self::half_open::HalfOpen;
pub(crate) use self::rules::{Rules, THOUSAND};
use crate::state::{State, TripReason};

/// Nanoseconds from an origin that the caller chose.
pub(crate) type Nanos = i64;

/// The right to one call. A result counts only in the generation that admitted its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) generation: u64,
    /// Which probe of its half-open period, if it is one.
    pub(crate) probe: Option<u64>,
}

/// A call is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) why: Why,
    /// When it is worth coming back; `None` if not known.
    pub(crate) until: Option<Nanos>,
    pub(crate) reason: Option<TripReason>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Open,
    ProbesBusy,
    ForcedOpen,
}

impl Denied {
    pub(crate) const FORCED: Self = Self {
        why: Why::ForcedOpen,
        until: None,
        reason: None,
    };

    pub(crate) fn open(until: Nanos, reason: TripReason) -> Self {
        Self {
            why: Why::Open,
            until: Some(until),
            reason: Some(reason),
        }
    }
}

/// What a breaker hears of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Success,
    /// With what the server asked for, in nanoseconds; 0 for nothing.
    Failure {
        hint: u64,
    },
    RateLimited {
        hint: u64,
    },
    /// Trips at once, for so long.
    Held {
        time: u64,
    },
    /// Says nothing about the target.
    Ignored,
}

/// A change of state, with what led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transition {
    pub(crate) from: State,
    pub(crate) to: State,
    pub(crate) generation: u64,
    pub(crate) reason: Option<TripReason>,
    /// How long it will be open.
    pub(crate) open_for: Option<u64>,
    /// Failures in the period that ended.
    pub(crate) failures: u32,
    /// Successful probes in the period that ended.
    pub(crate) successes: u32,
}

#[derive(Clone, Debug)]
enum Mode {
    Closed { run: u32 },
    Open { until: Nanos, reason: TripReason },
    HalfOpen(HalfOpen),
    ForcedOpen,
}

/// See the [module docs](self).
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    rules: Rules,
    mode: Mode,
    generation: u64,
    /// The open time of the next trip, before jitter and hints.
    scheduled: u64,
    reopenings: u32,
    trips: u64,
}

/// What the machine shows without an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) state: State,
    pub(crate) generation: u64,
    pub(crate) reason: Option<TripReason>,
    pub(crate) until: Option<Nanos>,
    pub(crate) run: u32,
    pub(crate) out: usize,
    pub(crate) successes: u32,
    pub(crate) failures: u32,
    pub(crate) reopenings: u32,
    pub(crate) trips: u64,
}

impl Machine {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            mode: Mode::Closed { run: 0 },
            // From 1, so that 0 can stand for "no generation" in the cell.
            generation: 1,
            scheduled: rules.open_time,
            reopenings: 0,
            trips: 0,
        }
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Admits a call or not. At the end of the open time the first to ask begins the half-open
    /// period.
    pub(crate) fn acquire(&mut self, now: Nanos) -> (Result<Ticket, Denied>, Option<Transition>) {
        match &mut self.mode {
            Mode::Closed { .. } => (
                Ok(Ticket {
                    generation: self.generation,
                    probe: None,
                }),
                None,
            ),
            Mode::ForcedOpen => (Err(Denied::FORCED), None),
            Mode::Open { until, reason } if now < *until => {
                (Err(Denied::open(*until, *reason)), None)
            }
            Mode::Open { reason, .. } => {
                let reason = *reason;
                let lease = self.rules.lease(self.scheduled);
                let change = self.change(Mode::HalfOpen(HalfOpen::new(reason, lease)));
                (self.probe(now), Some(change))
            }
            Mode::HalfOpen(_) => (self.probe(now), None),
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

    /// Hears how a call ended. One of an earlier generation is not heard.
    pub(crate) fn settle(
        &mut self,
        ticket: Ticket,
        heard: Heard,
        now: Nanos,
        chance: &Chance,
    ) -> Option<Transition> {
        if ticket.generation != self.generation {
            return None;
        }
        match &mut self.mode {
            Mode::Closed { run } => match heard {
                Heard::Success => *run = 0,
                Heard::Failure { hint } => {
                    *run = run.saturating_add(1);
                    if *run >= self.rules.failures {
                        return Some(self.trip(TripReason::Consecutive, hint, now, chance));
                    }
                }
                Heard::Held { time } => return Some(self.hold(time, now)),
                Heard::RateLimited { .. } | Heard::Ignored => (),
            },
            Mode::HalfOpen(half_open) => {
                half_open.leave(ticket.probe);
                match heard {
                    Heard::Success => {
                        half_open.successes += 1;
                        if half_open.successes >= self.rules.close_after {
                            return Some(self.close());
                        }
                    }
                    Heard::Failure { hint } | Heard::RateLimited { hint } => {
                        half_open.failures += 1;
                        if half_open.failures >= self.rules.reopen_after {
                            self.grow();
                            return Some(self.trip(TripReason::ProbeFailed, hint, now, chance));
                        }
                    }
                    Heard::Held { time } => {
                        half_open.failures += 1;
                        self.grow();
                        return Some(self.hold(time, now));
                    }
                    Heard::Ignored => (),
                }
            }
            // Nothing was admitted in this generation.
            Mode::Open { .. } | Mode::ForcedOpen => (),
        }
        None
    }

    /// Opens until somebody says otherwise; `None` if it is so already.
    pub(crate) fn force_open(&mut self) -> Option<Transition> {
        match self.mode {
            Mode::ForcedOpen => None,
            _ => Some(self.change(Mode::ForcedOpen)),
        }
    }

    /// Closes; `None` if it is closed already.
    pub(crate) fn force_close(&mut self) -> Option<Transition> {
        match self.mode {
            Mode::Closed { .. } => None,
            _ => Some(self.close()),
        }
    }

    /// Makes it as new. Calls that are under way are not heard, whatever the state was.
    pub(crate) fn reset(&mut self) -> Transition {
        self.trips = 0;
        self.close()
    }

    pub(crate) fn view(&self, now: Nanos) -> View {
        let mut view = View {
            state: State::Closed,
            generation: self.generation,
            reason: None,
            until: None,
            run: 0,
            out: 0,
            successes: 0,
            failures: 0,
            reopenings: self.reopenings,
            trips: self.trips,
        };
        match &self.mode {
            Mode::Closed { run } => view.run = *run,
            Mode::ForcedOpen => view.state = State::ForcedOpen,
            Mode::Open { until, reason } => {
                view.reason = Some(*reason);
                if now < *until {
                    view.state = State::Open;
                    view.until = Some(*until);
                } else {
                    view.state = State::HalfOpen;
                }
            }
            Mode::HalfOpen(half_open) => {
                view.state = State::HalfOpen;
                view.reason = Some(half_open.reason);
                view.out = half_open.out();
                view.successes = half_open.successes;
                view.failures = half_open.failures;
            }
        }
        view
    }

    /// The state without a clock: an open one stays open here until a call is admitted.
    pub(crate) fn settled_state(&self) -> (State, Option<(Nanos, TripReason)>) {
        match self.mode {
            Mode::Closed { .. } => (State::Closed, None),
            Mode::Open { until, reason } => (State::Open, Some((until, reason))),
            Mode::HalfOpen(_) => (State::HalfOpen, None),
            Mode::ForcedOpen => (State::ForcedOpen, None),
        }
    }

    fn grow(&mut self) {
        self.scheduled = self.rules.next_open_time(self.scheduled);
        self.reopenings = self.reopenings.saturating_add(1);
    }

    /// Opens for the scheduled time; a hint lengthens it.
    fn trip(&mut self, reason: TripReason, hint: u64, now: Nanos, chance: &Chance) -> Transition {
        let drawn = self.rules.jittered(self.scheduled, chance);
        self.open(reason, drawn.max(self.rules.bounded(hint)), now)
    }

    /// Opens for the time that the target named, exactly.
    fn hold(&mut self, time: u64, now: Nanos) -> Transition {
        self.open(TripReason::Held, self.rules.bounded(time), now)
    }

    fn open(&mut self, reason: TripReason, time: u64, now: Nanos) -> Transition {
        self.trips = self.trips.saturating_add(1);
        let until = now.saturating_add_unsigned(time);
        let mut change = self.change(Mode::Open { until, reason });
        change.open_for = Some(time);
        change
    }

    fn close(&mut self) -> Transition {
        self.scheduled = self.rules.open_time;
        self.reopenings = 0;
        self.change(Mode::Closed { run: 0 })
    }

    fn change(&mut self, to: Mode) -> Transition {
        let from = std::mem::replace(&mut self.mode, to);
        self.generation += 1;
        let (failures, successes) = match &from {
            Mode::Closed { run } => (*run, 0),
            Mode::HalfOpen(half_open) => (half_open.failures, half_open.successes),
            Mode::Open { .. } | Mode::ForcedOpen => (0, 0),
        };
        Transition {
            from: from.state(),
            to: self.mode.state(),
            generation: self.generation,
            reason: self.mode.reason(),
            open_for: None,
            failures,
            successes,
        }
    }
}

impl Mode {
    fn state(&self) -> State {
        match self {
            Self::Closed { .. } => State::Closed,
            Self::Open { .. } => State::Open,
            Self::HalfOpen(_) => State::HalfOpen,
            Self::ForcedOpen => State::ForcedOpen,
        }
    }

    fn reason(&self) -> Option<TripReason> {
        match self {
            Self::Open { reason, .. } => Some(*reason),
            Self::HalfOpen(half_open) => Some(half_open.reason),
            Self::Closed { .. } | Self::ForcedOpen => None,
        }
    }
}
