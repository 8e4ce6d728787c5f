//! The brownout rule on the latencies that were measured of a real target: the time to the first
//! token is log-normal with a median of 0.5 s and a sigma of 0.55; some answers straggle, by four
//! times a Pareto of shape 2.5; a hang runs into a limit of 8 s; 0.2 % fail.

use std::time::Duration;

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::*;
use crate::{BreakerConfig, Rule};

pub(crate) struct Target {
    rng: StdRng,
    pub(crate) stragglers: f64,
    pub(crate) slower: f64,
    pub(crate) hangs: f64,
}

impl Target {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            rng: StdRng::seed_from_u64(seed),
            stragglers: 0.004,
            slower: 1.0,
            hangs: 0.0,
        }
    }

    fn share(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (a, b) = (1.0 - self.share(), self.share());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    /// What comes back, and after how many nanoseconds.
    pub(crate) fn answer(&mut self) -> (Heard, u64) {
        let (heard, seconds) = self.answer_in_seconds();
        let took = Duration::from_secs_f64(seconds).as_nanos();
        (heard, u64::try_from(took).unwrap())
    }

    fn answer_in_seconds(&mut self) -> (Heard, f64) {
        let limit = 8.0;
        if self.share() < 0.002 {
            return (FAILURE, 0.2);
        }
        if self.share() < self.hangs {
            return (FAILURE, limit);
        }
        let mut took = 0.5 * (0.55 * self.normal()).exp() * self.slower;
        if self.share() < self.stragglers {
            took *= 4.0 * (1.0 - self.share()).powf(-1.0 / 2.5);
        }
        if took > limit {
            return (FAILURE, limit);
        }
        (Heard::Success, took)
    }
}

fn rules() -> Rules {
    let config = BreakerConfig::new().rules([Rule::brownout()]);
    Rules::clone(&config.check().unwrap().rules)
}

impl Bench {
    /// Calls a second apart; after how many it opened.
    fn calls(&mut self, target: &mut Target, most: usize) -> Option<usize> {
        (1..=most).find(|_| {
            self.now += SECOND;
            let (heard, took) = target.answer();
            let ticket = self.acquire().expect("closed");
            self.settle_after(ticket, heard, took).is_some()
        })
    }
}

fn learnt(seed: u64) -> (Bench, Target) {
    let mut bench = Bench::new(rules());
    let mut target = Target::new(seed);
    assert_eq!(bench.calls(&mut target, 400), None, "healthy, seed {seed}");
    (bench, target)
}

#[test]
fn six_times_slower_trips_within_30_calls() {
    for seed in 0..20 {
        let (mut bench, mut target) = learnt(seed);
        target.slower = 6.0;
        let opened = bench.calls(&mut target, 30);
        assert!(opened.is_some(), "seed {seed}");
        assert_eq!(
            bench.acquire().unwrap_err().reason,
            Some(TripReason::Brownout)
        );
    }
}

#[test]
fn a_hang_of_a_tenth_trips_within_300_calls() {
    for seed in 0..20 {
        let (mut bench, mut target) = learnt(seed);
        target.hangs = 0.1;
        assert!(bench.calls(&mut target, 300).is_some(), "seed {seed}");
    }
}

#[test]
fn stragglers_of_a_fiftieth_never_trip() {
    for seed in 0..20 {
        // From one call to the next, and from the beginning.
        let (mut bench, mut target) = learnt(seed);
        target.stragglers = 0.02;
        assert_eq!(bench.calls(&mut target, 10_000), None, "seed {seed}");

        let mut bench = Bench::new(rules());
        let mut target = Target::new(seed + 100);
        target.stragglers = 0.02;
        assert_eq!(bench.calls(&mut target, 10_000), None, "seed {seed}");
    }
}

// What learns on takes the brownout for the normal: the limit must not move with it.
#[test]
fn the_baseline_is_frozen_while_suspect_and_kept_while_open() {
    let (mut bench, mut target) = learnt(3);
    let limit = |bench: &Bench| bench.machine.view(bench.now).slow_over.unwrap();
    let before = limit(&bench);
    target.slower = 6.0;
    bench.calls(&mut target, 30).unwrap();
    assert_eq!(limit(&bench), before);
    bench.now += 5 * SECOND;
    let probe = bench.acquire().unwrap();
    let change = bench
        .settle_after(probe, Heard::Success, 3 * before)
        .unwrap();
    assert_eq!(change.to, State::Open, "a slow probe is a failed one");
    bench.now += 10 * SECOND;
    for _ in 0..2 {
        let probe = bench.acquire().unwrap();
        bench.settle_after(probe, Heard::Success, before);
    }
    assert_eq!((bench.state(), limit(&bench)), (State::Closed, before));
    bench.machine.reset(bench.now);
    assert_eq!(bench.machine.view(bench.now).slow_over, None);
}

// A target that grows slower little by little, as it does over a day, is still healthy.
#[test]
fn a_slow_drift_is_learnt() {
    let (mut bench, mut target) = learnt(5);
    let before = bench.machine.view(bench.now).slow_over.unwrap();
    for step in 1..=20 {
        target.slower = 1.0 + f64::from(step) * 0.03;
        assert_eq!(bench.calls(&mut target, 1500), None, "step {step}");
    }
    let after = bench.machine.view(bench.now).slow_over.unwrap();
    assert!(after > before + before / 4);
}
