//! The machine against a model that keeps every call and recomputes everything from its lists.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Acquire,
    /// Settles one of the tickets ever given, by its place, after so many milliseconds.
    Settle(usize, Heard, u16),
    /// The clock goes on, stands still, or goes back.
    Move(i32),
    ForceOpen,
    ForceOpenFor(u16),
    TripByHand,
    HalfOpen,
    ForceClose,
    Reset,
    Disable,
    MetricsOnly,
}

impl Step {
    /// A step from any number: many steps are drawn much faster so.
    pub(crate) fn from(mut n: u64) -> Self {
        let mut draw = |of: u64| {
            let drawn = n % of;
            n /= of;
            drawn
        };
        match draw(40) {
            0..16 => Self::Acquire,
            16..32 => {
                let hint = (draw(4) == 0) as u64 * draw(20_000) * MS;
                let heard = match draw(17) {
                    0..6 => Heard::Success,
                    6..11 => Heard::Failure { hint },
                    11..13 => Heard::RateLimited { hint },
                    13 => Heard::Held {
                        time: draw(20_000) * MS,
                    },
                    14 => Heard::Lost,
                    _ => Heard::Ignored,
                };
                Self::Settle(draw(4) as usize, heard, draw(300) as u16)
            }
            32..38 => Self::Move(draw(700) as i32),
            38 => Self::Move(draw(10_000) as i32 - 3000),
            _ => match draw(8) {
                0 => Self::ForceOpen,
                1 => Self::ForceOpenFor(draw(3000) as u16),
                2 => Self::TripByHand,
                3 => Self::HalfOpen,
                4 => Self::ForceClose,
                5 => Self::Reset,
                6 => Self::Disable,
                _ => Self::MetricsOnly,
            },
        }
    }
}

fn window(spans: usize) -> impl Strategy<Value = WindowRule> {
    let most = prop_oneof![
        (1..6u64).prop_map(Most::Number),
        (1..=10u32, 1..8u64).prop_map(|(tenths, min_calls)| Most::Share {
            billionths: BILLION / 10 * tenths,
            min_calls,
        }),
    ];
    let bad = prop_oneof![
        Just(Bad::Failed),
        (50..250u64).prop_map(|ms| Bad::Slow(ms * MS))
    ];
    let last = prop_oneof![Just(None), (1..10u32).prop_map(Some)];
    (0..spans, last, bad, most).prop_map(|(span, last, bad, most)| WindowRule {
        span,
        last,
        bad,
        most,
        reason: match (bad, last) {
            (Bad::Failed, None) => TripReason::Rate,
            (Bad::Failed, Some(_)) => TripReason::RateOfLast,
            _ => TripReason::Slow,
        },
    })
}

prop_compose! {
    pub(crate) fn any_rules()(
        failures in 0..4u32,
        windows in prop::collection::vec(window(2), 0..4),
        spans in prop::collection::vec(10..4000u64, 2),
        open in 0..3000u64,
        growth in 1000..3000u32,
        concurrent in 1..4u32,
        close_after in 1..4u32,
        reopen_after in 1..4u32,
    ) -> Rules {
        Rules {
            failures,
            windows,
            spans: spans.into_iter().map(|ms| ms * MS).collect(),
            open_time: open * MS,
            max_open_time: 6000 * MS,
            growth,
            concurrent,
            close_after,
            reopen_after,
            max_hold: 10_000 * MS,
            ..super::rules()
        }
    }
}

/// One period of the model: everything that was admitted in it, and what was heard of it.
struct Model {
    period: Period,
    /// Bare open times of the reopenings since it was last closed.
    reopened: Vec<u64>,
}

enum Period {
    Closed { since: i64, calls: Vec<Call> },
    Open { until: i64 },
    HalfOpen { probes: Vec<Probe>, leases: bool },
    Forced,
    Disabled,
    MetricsOnly,
}

#[derive(Clone, Copy)]
struct Call {
    heard: Heard,
    took: u64,
    at: i64,
}

struct Probe {
    leased_until: i64,
    /// Its slot went to another, or it ended.
    slotless: bool,
    /// Whether it was good, once it counts.
    good: Option<bool>,
}

fn is_failure(heard: Heard) -> bool {
    matches!(heard, Heard::Failure { .. })
}

/// Whether a rule counts a call, and as what.
fn judged(bad: Bad, call: &Call) -> Option<bool> {
    match (bad, call.heard) {
        (_, Heard::Held { .. } | Heard::Ignored) => None,
        (Bad::Failed, Heard::Lost) => None,
        (Bad::Failed, heard) => Some(heard != Heard::Success),
        (Bad::Slow(_), Heard::Lost) => Some(true),
        (Bad::Slow(over), _) => Some(call.took > over),
        (Bad::Brownout { .. }, _) => unreachable!("no such rule here"),
    }
}

/// Whether the calls of a closed period, the last one first among them, reach a rule.
fn reached(rule: &WindowRule, rules: &Rules, since: i64, calls: &[Call], now: i64) -> bool {
    let epoch = |at: i64| {
        let width = i64::try_from((rules.spans[rule.span] / 10).max(1)).unwrap();
        at.saturating_sub(since).max(0) / width
    };
    let counted: Vec<_> = calls
        .iter()
        .filter_map(|call| Some((epoch(call.at), judged(rule.bad, call)?)))
        .collect();
    let last = rule.last.map_or(counted.len(), |last| last as usize);
    let counted = &counted[counted.len().saturating_sub(last)..];
    let counted: Vec<_> = counted
        .iter()
        .filter(|(e, _)| e + 10 > epoch(now))
        .collect();
    let bad = counted.iter().filter(|(_, bad)| *bad).count() as u64;
    match rule.most {
        Most::Number(most) => bad >= most,
        Most::Share {
            billionths,
            min_calls,
        } => {
            let share = f64::from(billionths) / f64::from(BILLION);
            let calls = counted.len() as u64;
            bad > 0 && calls >= min_calls && bad as f64 >= share * calls as f64 - 1e-9
        }
    }
}

impl Model {
    fn new() -> Self {
        let calls = Vec::new();
        Self {
            period: Period::Closed { since: 0, calls },
            reopened: Vec::new(),
        }
    }

    fn scheduled(&self, rules: &Rules) -> u64 {
        *self.reopened.last().unwrap_or(&rules.open_time)
    }

    fn grow(&mut self, rules: &Rules) {
        let next = u128::from(self.scheduled(rules)) * u128::from(rules.growth) / 1000;
        self.reopened
            .push(u64::try_from(next).unwrap().min(rules.max_open_time));
    }

    fn open(&mut self, time: u64, now: i64) {
        self.period = Period::Open {
            until: now + i64::try_from(time).unwrap(),
        };
    }

    fn close(&mut self, now: i64) {
        self.reopened.clear();
        let calls = Vec::new();
        self.period = Period::Closed { since: now, calls };
    }

    /// The place of the probe in its period, or a plain admission.
    fn acquire(&mut self, rules: &Rules, now: i64) -> Result<usize, Why> {
        let lease = i64::try_from(self.scheduled(rules).max(1_000_000_000)).unwrap();
        match &self.period {
            Period::Closed { .. } | Period::Disabled | Period::MetricsOnly => return Ok(0),
            Period::Forced => return Err(Why::ForcedOpen),
            Period::Open { until } if now < *until => return Err(Why::Open),
            Period::Open { .. } => {
                let probes = Vec::new();
                let leases = true;
                self.period = Period::HalfOpen { probes, leases };
            }
            Period::HalfOpen { .. } => (),
        }
        let Period::HalfOpen { probes, leases } = &mut self.period else {
            unreachable!()
        };
        let until = if *leases { now + lease } else { i64::MAX };
        let out = probes.iter().filter(|p| !p.slotless).count();
        let settled = probes.iter().filter(|p| p.good.is_some()).count();
        let most = (rules.close_after + rules.reopen_after - 1) as usize;
        if out >= rules.concurrent as usize || settled + out >= most {
            match probes.iter_mut().find(|p| !p.slotless) {
                Some(p) if p.leased_until <= now => p.slotless = true,
                _ => return Err(Why::ProbesBusy),
            }
            for p in probes.iter_mut() {
                p.leased_until = p.leased_until.max(until);
            }
        }
        probes.push(Probe {
            leased_until: until,
            slotless: false,
            good: None,
        });
        Ok(probes.len() - 1)
    }

    fn settle(&mut self, place: usize, heard: Heard, took: u64, rules: &Rules, now: i64) {
        let slow = rules
            .windows
            .iter()
            .filter_map(|rule| match rule.bad {
                Bad::Slow(over) => Some(over),
                _ => None,
            })
            .min();
        let hint = hint(heard).min(rules.max_hold);
        match &mut self.period {
            Period::Closed { since, calls } => {
                let call = Call {
                    heard,
                    took,
                    at: now,
                };
                calls.push(call);
                let run = calls
                    .iter()
                    .rev()
                    .take_while(|call| call.heard != Heard::Success)
                    .filter(|call| is_failure(call.heard))
                    .count();
                let asked = rules
                    .windows
                    .iter()
                    .any(|r| judged(r.bad, &call) == Some(true))
                    || is_failure(heard)
                    || matches!(heard, Heard::RateLimited { .. });
                let run = rules.failures > 0 && run >= rules.failures as usize;
                let window = |rule| reached(rule, rules, *since, calls, now);
                if let Heard::Held { time } = heard {
                    self.open(time.min(rules.max_hold), now);
                } else if asked && (run || rules.windows.iter().any(window)) {
                    self.open(self.scheduled(rules).max(hint), now);
                }
            }
            Period::HalfOpen { probes, .. } => {
                let probe = &mut probes[place];
                probe.slotless = true;
                probe.good = match heard {
                    Heard::Success => Some(slow.is_none_or(|over| took <= over)),
                    Heard::Lost => slow.map(|_| false),
                    Heard::Ignored => None,
                    _ => Some(false),
                };
                let good = probe.good;
                let ended = |good| probes.iter().filter(|p| p.good == Some(good)).count();
                let (successes, failures) = (ended(true), ended(false));
                match (heard, good) {
                    (Heard::Held { time }, _) => {
                        self.grow(rules);
                        self.open(time.min(rules.max_hold), now);
                    }
                    (_, Some(false)) if failures >= rules.reopen_after as usize => {
                        self.grow(rules);
                        self.open(self.scheduled(rules).max(hint), now);
                    }
                    (_, Some(true)) if successes >= rules.close_after as usize => self.close(now),
                    _ => (),
                }
            }
            Period::MetricsOnly | Period::Disabled => (),
            Period::Open { .. } | Period::Forced => unreachable!("no ticket of this period"),
        }
    }

    fn by_hand(&mut self, step: &Step, rules: &Rules, now: i64) {
        match step {
            Step::ForceOpen => self.period = Period::Forced,
            Step::ForceOpenFor(ms) => self.open(u64::from(*ms) * MS, now),
            Step::TripByHand => {
                if self.state(now) == State::HalfOpen {
                    self.grow(rules);
                }
                self.open(self.scheduled(rules), now);
            }
            Step::HalfOpen => {
                if !matches!(self.period, Period::HalfOpen { .. }) {
                    self.period = Period::HalfOpen {
                        probes: Vec::new(),
                        leases: false,
                    };
                }
            }
            Step::ForceClose if self.state(now) == State::Closed => (),
            Step::ForceClose | Step::Reset => self.close(now),
            Step::Disable => self.period = Period::Disabled,
            Step::MetricsOnly => self.period = Period::MetricsOnly,
            Step::Acquire | Step::Settle(..) | Step::Move(_) => unreachable!("not by hand"),
        }
    }

    fn state(&self, now: i64) -> State {
        match &self.period {
            Period::Closed { .. } => State::Closed,
            Period::Open { until } if now < *until => State::Open,
            Period::Open { .. } | Period::HalfOpen { .. } => State::HalfOpen,
            Period::Forced => State::ForcedOpen,
            Period::Disabled => State::Disabled,
            Period::MetricsOnly => State::MetricsOnly,
        }
    }
}

/// Does to a machine what a step says by hand.
pub(crate) fn by_hand(machine: &mut Machine, step: &Step, now: i64) -> Option<Transition> {
    match step {
        Step::ForceOpen => machine.force_open(now),
        Step::ForceOpenFor(ms) => Some(machine.force_open_for(u64::from(*ms) * MS, now)),
        Step::TripByHand => Some(machine.trip_by_hand(now, &Chance::fixed(0))),
        Step::HalfOpen => machine.half_open(now),
        Step::ForceClose => machine.force_close(now),
        Step::Reset => Some(machine.reset(now)),
        Step::Disable => machine.disable(now),
        Step::MetricsOnly => machine.metrics_only(now),
        Step::Acquire | Step::Settle(..) | Step::Move(_) => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(8000) })]

    #[test]
    fn the_machine_does_what_the_model_does(
        rules in any_rules(),
        steps in prop::collection::vec(any::<u64>(), 1..100),
    ) {
        let mut bench = Bench::new(rules.clone());
        let mut model = Model::new();
        // Tickets that are out, each with its place in the model.
        let mut out: Vec<(Ticket, usize)> = Vec::new();
        for step in steps {
            match Step::from(step) {
                Step::Acquire => {
                    let wanted = model.acquire(&rules, bench.now);
                    match bench.acquire() {
                        Ok(ticket) => out.push((ticket, wanted.expect("the model refuses"))),
                        Err(denied) => prop_assert_eq!(Err(denied.why), wanted),
                    }
                }
                Step::Settle(i, heard, took) if !out.is_empty() => {
                    let (ticket, place) = out.swap_remove(i % out.len());
                    let took = u64::from(took) * MS;
                    if ticket.generation == bench.machine.generation() {
                        model.settle(place, heard, took, &rules, bench.now);
                    }
                    bench.settle_after(ticket, heard, took);
                }
                Step::Settle(..) => (),
                // Back only where the windows of the model, which know no order, stay right.
                Step::Move(ms) if ms < 0 && !rules.windows.is_empty() => (),
                Step::Move(ms) => bench.now += i64::from(ms) * 1_000_000,
                by_hand => {
                    model.by_hand(&by_hand, &rules, bench.now);
                    super::model::by_hand(&mut bench.machine, &by_hand, bench.now);
                }
            }
            let view = bench.machine.view(bench.now);
            prop_assert_eq!(view.state, model.state(bench.now));
            prop_assert_eq!(view.reopenings as usize, model.reopened.len());
            if let Period::Open { until } = model.period {
                prop_assert_eq!(bench.machine.figures().until, Some(until));
            }
        }
    }
}
