//! Rules over a time, over the last calls and over slow ones.

use super::*;

const TEN_SECONDS: u64 = 10_000 * MS;

fn failed(span: usize, last: Option<u32>, most: Most) -> WindowRule {
    WindowRule {
        span,
        last,
        bad: Bad::Failed,
        most,
        reason: last.map_or(TripReason::Rate, |_| TripReason::RateOfLast),
    }
}

fn half(min_calls: u64) -> Most {
    Most::Share {
        billionths: BILLION / 2,
        min_calls,
    }
}

fn over(windows: Vec<WindowRule>) -> Rules {
    Rules {
        failures: 0,
        windows,
        spans: vec![TEN_SECONDS],
        ..rules()
    }
}

fn slow(over: u64) -> WindowRule {
    WindowRule {
        bad: Bad::Slow(over),
        reason: TripReason::Slow,
        ..failed(0, None, half(4))
    }
}

impl Bench {
    fn took(&mut self, heard: Heard, ms: u64) -> Option<Transition> {
        let ticket = self.acquire().expect("admitted");
        self.settle_after(ticket, heard, ms * MS)
    }
}

// Row 38: a partial outage that no run sees.
#[test]
fn row_38_failures_that_alternate_trip_by_rate() {
    let mut bench = Bench::new(Rules {
        failures: 3,
        ..over(vec![failed(0, None, half(20))])
    });
    for _ in 0..9 {
        assert_eq!(bench.call(Heard::Success), None);
        assert_eq!(bench.call(FAILURE), None);
    }
    bench.call(Heard::Success);
    let change = bench.call(FAILURE).unwrap();
    assert_eq!(change.reason, Some(TripReason::Rate));
    assert_eq!((change.calls, change.bad), (20, 10));
}

#[test]
fn a_share_needs_its_calls_and_a_fast_success_trips_nothing() {
    let mut bench = Bench::new(over(vec![failed(0, None, half(5))]));
    for _ in 0..4 {
        assert_eq!(bench.call(FAILURE), None);
    }
    for _ in 0..3 {
        assert_eq!(bench.call(Heard::Success), None);
    }
    assert!(bench.call(Heard::RateLimited { hint: 0 }).is_some());
}

#[test]
fn a_time_forgets_by_tenths() {
    let mut bench = Bench::new(over(vec![failed(0, None, Most::Number(3))]));
    bench.now = 999 * i64::try_from(MS).unwrap();
    bench.call(FAILURE);
    bench.call(FAILURE);
    bench.now = 10 * SECOND;
    assert_eq!(bench.call(FAILURE), None, "the first tenth is over");
    bench.now = 19 * SECOND;
    bench.call(FAILURE);
    assert!(bench.call(FAILURE).is_some());
}

// Row 11, and no older than.
#[test]
fn row_11_the_last_calls_slide_and_grow_old() {
    let rules = over(vec![failed(0, Some(10), Most::Number(5))]);
    let mut bench = Bench::new(rules);
    for _ in 0..100_000 {
        bench.call(Heard::Success);
    }
    for _ in 0..4 {
        assert_eq!(bench.call(FAILURE), None);
    }
    bench.now += 11 * SECOND;
    for _ in 0..4 {
        assert_eq!(bench.call(FAILURE), None, "the four are too old");
    }
    let change = bench.call(FAILURE).unwrap();
    assert_eq!(change.reason, Some(TripReason::RateOfLast));
    assert_eq!((change.calls, change.bad), (5, 5));
}

// Row 10: sixty days on the shortest window.
#[test]
fn row_10_an_idle_gap_beyond_small_counters() {
    let mut bench = Bench::new(Rules {
        spans: vec![10 * MS],
        ..over(vec![failed(0, None, Most::Number(2))])
    });
    bench.call(FAILURE);
    bench.now += 60 * DAY;
    assert_eq!(bench.call(FAILURE), None);
    assert!(bench.call(FAILURE).is_some());
}

// Row 8: what was counted before a clock went back is still known.
#[test]
fn row_8_windows_when_the_clock_goes_back_or_stands_still() {
    let mut bench = Bench::new(over(vec![failed(0, None, half(4))]));
    bench.now = 5 * SECOND;
    bench.call(FAILURE);
    bench.call(FAILURE);
    for now in [-DAY, i64::MIN, 5 * SECOND] {
        bench.now = now;
        assert_eq!(bench.machine.view(now).bad, 2);
    }
    bench.call(FAILURE);
    assert!(bench.call(FAILURE).is_some());
    for now in [i64::MIN, 0, i64::MAX] {
        let mut bench = Bench::new(over(vec![failed(0, None, half(4))]));
        bench.now = now;
        for _ in 0..3 {
            bench.call(FAILURE);
        }
        assert!(bench.call(FAILURE).is_some(), "the clock stands at {now}");
    }
}

#[test]
fn slow_is_strictly_over_and_counts_failures_too() {
    let mut bench = Bench::new(over(vec![slow(4000 * MS)]));
    for _ in 0..10 {
        assert_eq!(bench.took(Heard::Success, 4000), None);
    }
    let mut bench = Bench::new(over(vec![slow(4000 * MS)]));
    bench.took(Heard::Success, 1);
    bench.took(Heard::Success, 4001);
    bench.took(FAILURE, 1);
    let change = bench.took(Heard::Success, 4001).unwrap();
    assert_eq!(change.reason, Some(TripReason::Slow));
    assert_eq!((change.calls, change.bad), (4, 2));
}

#[test]
fn a_slow_success_ends_a_run_and_a_slow_probe_is_a_failed_one() {
    let rules = Rules {
        failures: 3,
        ..over(vec![slow(4000 * MS)])
    };
    let mut bench = Bench::new(rules.clone());
    bench.took(FAILURE, 1);
    bench.took(FAILURE, 1);
    bench.took(Heard::Success, 9000);
    assert_eq!(bench.machine.view(0).run, 0);

    let (mut bench, probe) = Bench::half_open(rules);
    let change = bench
        .settle_after(probe, Heard::Success, 4001 * MS)
        .unwrap();
    assert_eq!(change.reason, Some(TripReason::ProbeFailed));
}

#[test]
fn a_lost_attempt_is_a_slow_result_where_a_rule_asks_for_slow_ones() {
    let mut bench = Bench::new(over(vec![slow(4000 * MS)]));
    for _ in 0..3 {
        bench.took(Heard::Lost, 100);
    }
    assert!(bench.took(Heard::Lost, 100).is_some());

    let (mut bench, probe) = Bench::half_open(Rules {
        failures: 3,
        ..over(vec![slow(4000 * MS)])
    });
    assert!(bench.settle(probe, Heard::Lost).is_some());

    let (mut bench, probe) = Bench::half_open(rules());
    assert_eq!(bench.settle(probe, Heard::Lost), None);
    assert_eq!(bench.machine.view(bench.now).out, 0, "its slot is free");
}

// Of two rules that one call reaches a run is named, else the one that stands first.
#[test]
fn each_rule_is_named() {
    let both = |failures| Rules {
        failures,
        ..over(vec![
            failed(0, None, half(3)),
            failed(0, Some(5), Most::Number(3)),
        ])
    };
    for (failures, reason) in [(3, TripReason::Consecutive), (4, TripReason::Rate)] {
        let mut bench = Bench::new(both(failures));
        bench.call(FAILURE);
        bench.call(FAILURE);
        assert_eq!(bench.call(FAILURE).unwrap().reason, Some(reason));
        assert_eq!(bench.acquire().unwrap_err().reason, Some(reason));
    }
}

#[test]
fn a_new_closed_period_begins_with_nothing() {
    let mut bench = Bench::new(over(vec![failed(0, None, Most::Number(3))]));
    for _ in 0..3 {
        bench.call(FAILURE);
    }
    bench.now += 5 * SECOND;
    bench.call(Heard::Success);
    bench.call(Heard::Success);
    assert_eq!(bench.state(), State::Closed);
    bench.call(FAILURE);
    assert_eq!(bench.call(FAILURE), None);
}

#[test]
fn counting_alone_opens_at_nothing_and_disabled_hears_nothing() {
    let mut bench = Bench::new(over(vec![failed(0, None, Most::Number(3))]));
    bench.call(FAILURE);
    bench.machine.metrics_only(bench.now).unwrap();
    assert_eq!(bench.machine.view(0).bad, 0, "from nothing on");
    for _ in 0..10 {
        assert_eq!(bench.call(FAILURE), None);
    }
    let view = bench.machine.view(0);
    assert_eq!((view.state, view.bad), (State::MetricsOnly, 10));
    assert_eq!(bench.call(Heard::Held { time: 1 }), None);

    bench.machine.disable(bench.now).unwrap();
    for _ in 0..10 {
        assert_eq!(bench.call(FAILURE), None);
    }
    let view = bench.machine.view(0);
    assert_eq!((view.state, view.bad), (State::Disabled, 0));
    bench.machine.force_close(bench.now).unwrap();
    assert_eq!(bench.machine.view(0).bad, 0);
}

#[test]
fn a_ramp_admits_from_a_tenth_to_all() {
    let (mut bench, probe) = Bench::half_open(Rules {
        ramp: 30_000 * MS,
        ..rules()
    });
    bench.settle(probe, Heard::Success);
    bench.call(Heard::Success);
    let begin = bench.now;
    bench.chance = Chance::seeded(30);
    for (second, least, most) in [(0, 60, 140), (10, 350, 450), (20, 650, 750), (29, 930, 999)] {
        bench.now = begin + second * SECOND;
        let admitted = (0..1000).filter(|_| bench.acquire().is_ok()).count();
        assert!(
            (least..=most).contains(&admitted),
            "{admitted} at {second} s"
        );
    }
    let denied = std::iter::repeat_with(|| bench.acquire()).find_map(Result::err);
    assert_eq!(denied, Some(Denied::ramping(begin + 30 * SECOND)));
    bench.now = begin + 30 * SECOND;
    assert!((0..1000).all(|_| bench.acquire().is_ok()));
    bench.now = begin;
    assert!((0..1000).all(|_| bench.acquire().is_ok()), "it is over");
}

#[test]
fn no_ramp_where_somebody_closes_by_hand() {
    for close in [Machine::force_close, |machine: &mut Machine, now| {
        Some(machine.reset(now))
    }] {
        let (mut bench, _) = Bench::half_open(Rules {
            ramp: 30_000 * MS,
            ..rules()
        });
        bench.chance = Chance::fixed(u64::MAX);
        close(&mut bench.machine, bench.now);
        assert!(bench.acquire().is_ok());
    }
}

#[test]
fn by_hand_from_half_open_is_a_failed_reopening() {
    let mut bench = Bench::new(rules());
    let chance = Chance::fixed(0);
    bench.machine.trip_by_hand(bench.now, &chance);
    assert_eq!(bench.open_for(), 5 * SECOND);
    bench.machine.trip_by_hand(bench.now, &chance);
    assert_eq!(bench.open_for(), 5 * SECOND, "it was not half-open");
    bench.now += 5 * SECOND;
    bench.machine.trip_by_hand(bench.now, &chance);
    assert_eq!(bench.open_for(), 10 * SECOND);
    bench.machine.force_open_for(1800 * 1000 * MS, bench.now);
    assert_eq!(bench.open_for(), 1800 * SECOND);
    assert_eq!(
        bench.acquire().unwrap_err().reason,
        Some(TripReason::ByHand)
    );
    bench.machine.half_open(bench.now);
    let probe = bench.acquire().unwrap();
    bench.now += 400 * DAY;
    assert!(bench.acquire().is_err(), "no lease");
    bench.settle(probe, Heard::Ignored);
    assert!(bench.acquire().is_ok());
}
