//! The machine against a model that keeps every probe and recomputes everything from its lists.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Acquire,
    /// Settles one of the tickets ever given, by its place.
    Settle(usize, Heard),
    Forward(u32),
    ForceOpen,
    ForceClose,
    Reset,
}

fn heard() -> impl Strategy<Value = Heard> {
    let hint = prop_oneof![Just(0), 0..20_000u64];
    prop_oneof![
        4 => Just(Heard::Success),
        5 => hint.clone().prop_map(|h| Heard::Failure { hint: h * MS }),
        2 => hint.prop_map(|h| Heard::RateLimited { hint: h * MS }),
        1 => (0..20_000u64).prop_map(|t| Heard::Held { time: t * MS }),
        2 => Just(Heard::Ignored),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Acquire),
        8 => (0..6usize, heard()).prop_map(|(i, h)| Step::Settle(i, h)),
        4 => (0..7000u32).prop_map(Step::Forward),
        1 => Just(Step::ForceOpen),
        1 => Just(Step::ForceClose),
        1 => Just(Step::Reset),
    ]
}

prop_compose! {
    fn any_rules()(
        failures in 1..4u32,
        open in 0..3000u64,
        growth in 1000..3000u32,
        concurrent in 1..4u32,
        close_after in 1..4u32,
        reopen_after in 1..4u32,
    ) -> Rules {
        Rules {
            failures,
            open_time: open * MS,
            max_open_time: 6000 * MS,
            growth,
            jitter: 0,
            concurrent,
            close_after,
            reopen_after,
            max_hold: 10_000 * MS,
        }
    }
}

/// One period of the model: everything that was admitted in it, and what was heard of it.
#[derive(Default)]
struct Model {
    state: Option<Period>,
    /// Bare open times of the reopenings since it was last closed.
    reopened: Vec<u64>,
}

enum Period {
    Closed(Vec<Heard>),
    Open { until: i64 },
    HalfOpen { probes: Vec<Probe> },
    Forced,
}

struct Probe {
    leased_until: i64,
    /// Its slot went to another, or it ended.
    slotless: bool,
    heard: Option<Heard>,
}

impl Model {
    fn period(&mut self) -> &mut Period {
        self.state.get_or_insert_with(|| Period::Closed(Vec::new()))
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
        self.state = Some(Period::Open {
            until: now + i64::try_from(time).unwrap(),
        });
    }

    fn close(&mut self) {
        self.reopened.clear();
        self.state = Some(Period::Closed(Vec::new()));
    }

    /// The place of the probe in its period, or a plain admission.
    fn acquire(&mut self, rules: &Rules, now: i64) -> Result<usize, Why> {
        let lease = i64::try_from(self.scheduled(rules).max(1_000_000_000)).unwrap();
        match self.period() {
            Period::Closed(_) => return Ok(0),
            Period::Forced => return Err(Why::ForcedOpen),
            Period::Open { until } if now < *until => return Err(Why::Open),
            Period::Open { .. } => {
                self.state = Some(Period::HalfOpen { probes: Vec::new() });
            }
            Period::HalfOpen { .. } => (),
        }
        let Period::HalfOpen { probes } = self.period() else {
            unreachable!()
        };
        let out = probes.iter().filter(|p| !p.slotless).count();
        let settled = probes.iter().filter(|p| counts(p.heard)).count();
        let most = (rules.close_after + rules.reopen_after - 1) as usize;
        if out >= rules.concurrent as usize || settled + out >= most {
            let oldest = probes.iter_mut().find(|p| !p.slotless);
            match oldest {
                Some(p) if p.leased_until <= now => p.slotless = true,
                _ => return Err(Why::ProbesBusy),
            }
            for p in probes.iter_mut() {
                p.leased_until = p.leased_until.max(now + lease);
            }
        }
        probes.push(Probe {
            leased_until: now + lease,
            slotless: false,
            heard: None,
        });
        Ok(probes.len() - 1)
    }

    fn settle(&mut self, place: usize, heard: Heard, rules: &Rules, now: i64) {
        match self.period() {
            Period::Closed(all) => {
                all.push(heard);
                let run = all
                    .iter()
                    .rev()
                    .take_while(|h| **h != Heard::Success)
                    .filter(|h| matches!(h, Heard::Failure { .. }))
                    .count();
                match heard {
                    Heard::Held { time } => self.open(time.min(rules.max_hold), now),
                    Heard::Failure { hint } if run >= rules.failures as usize => {
                        let time = self.scheduled(rules).max(hint.min(rules.max_hold));
                        self.open(time, now);
                    }
                    _ => (),
                }
            }
            Period::HalfOpen { probes } => {
                let probe = &mut probes[place];
                probe.slotless = true;
                probe.heard = Some(heard);
                let successes = probes.iter().filter(|p| p.heard == Some(Heard::Success));
                let successes = successes.count();
                let failures = probes.iter().filter(|p| counts(p.heard)).count() - successes;
                match heard {
                    Heard::Held { time } => {
                        self.grow(rules);
                        self.open(time.min(rules.max_hold), now);
                    }
                    Heard::Failure { hint } | Heard::RateLimited { hint }
                        if failures >= rules.reopen_after as usize =>
                    {
                        self.grow(rules);
                        let time = self.scheduled(rules).max(hint.min(rules.max_hold));
                        self.open(time, now);
                    }
                    Heard::Success if successes >= rules.close_after as usize => self.close(),
                    _ => (),
                }
            }
            Period::Open { .. } | Period::Forced => unreachable!("no ticket of this period"),
        }
    }

    fn state(&mut self, now: i64) -> State {
        match self.period() {
            Period::Closed(_) => State::Closed,
            Period::Open { until } if now < *until => State::Open,
            Period::Open { .. } | Period::HalfOpen { .. } => State::HalfOpen,
            Period::Forced => State::ForcedOpen,
        }
    }
}

fn counts(heard: Option<Heard>) -> bool {
    heard.is_some_and(|heard| heard != Heard::Ignored)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn the_machine_does_what_the_model_does(
        rules in any_rules(),
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut bench = Bench::new(rules);
        let mut model = Model::default();
        // Tickets that are out, each with its place in the model and whether its period is over.
        let mut out: Vec<(Ticket, usize)> = Vec::new();
        for step in steps {
            match step {
                Step::Acquire => {
                    let wanted = model.acquire(&rules, bench.now);
                    match bench.acquire() {
                        Ok(ticket) => out.push((ticket, wanted.expect("the model refuses"))),
                        Err(denied) => prop_assert_eq!(Err(denied.why), wanted),
                    }
                }
                Step::Settle(i, heard) if !out.is_empty() => {
                    let (ticket, place) = out.swap_remove(i % out.len());
                    if ticket.generation == bench.machine.generation() {
                        model.settle(place, heard, &rules, bench.now);
                    }
                    bench.settle(ticket, heard);
                }
                Step::Settle(..) => (),
                Step::Forward(ms) => bench.now += i64::from(ms) * 1_000_000,
                Step::ForceOpen => {
                    bench.machine.force_open();
                    model.state = Some(Period::Forced);
                }
                Step::ForceClose => {
                    let closed = matches!(model.period(), Period::Closed(_));
                    bench.machine.force_close();
                    if !closed {
                        model.close();
                    }
                }
                Step::Reset => {
                    bench.machine.reset();
                    model.close();
                }
            }
            let view = bench.machine.view(bench.now);
            prop_assert_eq!(view.state, model.state(bench.now));
            prop_assert_eq!(view.reopenings as usize, model.reopened.len());
            if let Period::Open { until } = model.period() {
                prop_assert_eq!(bench.machine.settled_state().1.map(|(u, _)| u), Some(*until));
            }
        }
    }
}
