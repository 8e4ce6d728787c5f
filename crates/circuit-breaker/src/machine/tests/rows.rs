//! Rows of other systems' own tests, transcribed by hand: enough to see that the machine has the
//! shape that they need.

use super::*;

#[derive(Clone, Copy)]
enum Op {
    Success,
    Failure,
    RateLimited,
    Ignored,
    Begin(usize),
    EndSuccess(usize),
    Look,
}
use Op::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    Nothing,
    Admitted,
    Refused(Why),
    In(State),
}
use Want::*;

/// `(at in nanoseconds, what, what comes of it)`.
type Step = (i64, Op, Want);

fn play(rules: Rules, steps: &[Step]) {
    let mut bench = Bench::new(rules);
    let mut calls = std::collections::HashMap::new();
    for (i, (at, op, want)) in steps.iter().enumerate() {
        bench.now = *at;
        let heard = match op {
            Success | EndSuccess(_) => Heard::Success,
            Failure => FAILURE,
            RateLimited => Heard::RateLimited { hint: 0 },
            Ignored | Begin(_) | Look => Heard::Ignored,
        };
        let ticket = match op {
            Look => None,
            EndSuccess(call) => calls.remove(call).map(Ok),
            _ => Some(bench.acquire()),
        };
        if let (Begin(call), Some(Ok(ticket))) = (op, ticket) {
            calls.insert(*call, ticket);
        } else if let Some(Ok(ticket)) = ticket {
            bench.settle(ticket, heard);
        }
        match (want, ticket) {
            (Nothing, _) => (),
            (Admitted, ticket) => assert!(matches!(ticket, Some(Ok(_))), "step {i}"),
            (Refused(why), ticket) => {
                assert_eq!(ticket.unwrap().unwrap_err().why, *why, "step {i}");
            }
            (In(state), _) => assert_eq!(bench.state(), *state, "step {i}"),
        }
    }
}

const MS: i64 = 1_000_000;

fn once(failures: u32, open_ms: u64, growth: u32) -> Rules {
    Rules {
        failures,
        open_time: open_ms * super::MS,
        max_open_time: 100_000 * super::MS,
        growth,
        close_after: 1,
        ..rules()
    }
}

#[test]
fn go_default_sixth_consecutive_trips() {
    let mut steps = vec![(0, Failure, Admitted); 5];
    steps.push((0, Look, In(State::Closed)));
    steps.push((0, Failure, In(State::Open)));
    play(once(6, 60_000, 1000), &steps);
}

#[test]
fn go_success_resets_consecutive() {
    let mut steps = vec![(0, Failure, Admitted); 5];
    steps.push((0, Success, Admitted));
    steps.extend(vec![(0, Failure, Admitted); 5]);
    steps.push((0, Look, In(State::Closed)));
    steps.push((0, Failure, In(State::Open)));
    play(once(6, 60_000, 1000), &steps);
}

#[test]
fn go_excluded_neutral_in_half_open() {
    let at = 60_000 * MS + 1;
    let rules = Rules {
        concurrent: 3,
        close_after: 3,
        ..once(6, 60_000, 1000)
    };
    let mut steps = vec![(0, Failure, Admitted); 6];
    steps.extend(vec![(at, Ignored, Admitted); 4]);
    steps.push((at, Look, In(State::HalfOpen)));
    steps.push((at, Failure, In(State::Open)));
    play(rules, &steps);
}

#[test]
fn lk_growth_resets_after_close() {
    play(
        once(2, 1000, 2000),
        &[
            (0, Failure, Admitted),
            (100 * MS, Failure, In(State::Open)),
            (1100 * MS, Look, In(State::HalfOpen)),
            (1100 * MS, Success, In(State::Closed)),
            (1200 * MS, Failure, Admitted),
            (1300 * MS, Failure, In(State::Open)),
            (2350 * MS, Look, In(State::HalfOpen)),
        ],
    );
}

#[test]
fn lk_consecutive_ignores_rate_limited() {
    let steps: Vec<_> = (0..5)
        .map(|i| (i * 100 * MS, RateLimited, In(State::Closed)))
        .collect();
    play(once(3, 1000, 2000), &steps);
}

// Ours differs from the source on purpose: a rate-limited probe is a failed probe.
#[test]
fn lk_probe_429_closes_consecutive_breaker() {
    play(
        once(3, 1000, 2000),
        &[
            (0, Failure, In(State::Closed)),
            (100 * MS, Failure, Admitted),
            (200 * MS, Failure, In(State::Open)),
            (1200 * MS, RateLimited, In(State::Open)),
        ],
    );
}

#[test]
fn lk_slow_healthy_probe_still_closes() {
    play(
        once(3, 1000, 2000),
        &[
            (0, Failure, Nothing),
            (100 * MS, Failure, Nothing),
            (200 * MS, Failure, In(State::Open)),
            (1200 * MS, Begin(1), Admitted),
            (6200 * MS, Look, In(State::HalfOpen)),
            (6200 * MS, EndSuccess(1), In(State::Closed)),
        ],
    );
}

#[test]
fn fs_half_open_max_concurrent() {
    let rules = Rules {
        concurrent: 3,
        close_after: 3,
        ..once(1, 0, 1000)
    };
    let mut steps = vec![
        (0, Failure, Nothing),
        (0, Begin(1), Admitted),
        (0, Begin(2), Admitted),
        (0, Begin(3), Admitted),
    ];
    steps.extend(vec![(0, Success, Refused(Why::ProbesBusy)); 5]);
    play(rules, &steps);
}

#[test]
fn p7c_after_reset_needs_two_again() {
    play(
        once(2, 60_000, 1000),
        &[
            (0, Failure, Admitted),
            (0, Failure, Admitted),
            (0, Success, Refused(Why::Open)),
            (60_000 * MS, Look, In(State::HalfOpen)),
            (60_000 * MS, Success, In(State::Closed)),
            (60_000 * MS, Failure, In(State::Closed)),
            (60_000 * MS, Failure, In(State::Open)),
        ],
    );
}
