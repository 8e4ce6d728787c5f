//! The machine step by step, and against a naive model.

pub(crate) mod brownout;
pub(crate) mod model;
mod probing;
mod windows;

use tower_spillway_core::Chance;

use super::*;

pub(super) const MS: u64 = 1_000_000;
const SECOND: i64 = 1_000_000_000;
const DAY: i64 = 86_400 * SECOND;
const FAILURE: Heard = Heard::Failure { hint: 0 };

pub(super) fn rules() -> Rules {
    Rules {
        failures: 3,
        windows: Vec::new(),
        spans: Vec::new(),
        brownout: None,
        ramp: 0,
        open_time: 5000 * MS,
        max_open_time: 60_000 * MS,
        growth: 2000,
        jitter: 0,
        concurrent: 1,
        close_after: 2,
        reopen_after: 1,
        max_hold: 900_000 * MS,
    }
}

/// A machine with its clock.
struct Bench {
    machine: Machine,
    now: i64,
    chance: Chance,
}

impl Bench {
    fn new(rules: Rules) -> Self {
        Self {
            machine: Machine::new(Arc::new(rules)),
            now: 0,
            chance: Chance::fixed(0),
        }
    }

    fn acquire(&mut self) -> Result<Ticket, Denied> {
        self.machine.acquire(self.now, &self.chance).0
    }

    fn settle(&mut self, ticket: Ticket, heard: Heard) -> Option<Transition> {
        self.settle_after(ticket, heard, 0)
    }

    fn settle_after(&mut self, ticket: Ticket, heard: Heard, took: u64) -> Option<Transition> {
        self.machine
            .settle(ticket, heard, took, self.now, &self.chance)
    }

    /// One call that ends at once.
    fn call(&mut self, heard: Heard) -> Option<Transition> {
        let ticket = self.acquire().expect("admitted");
        self.settle(ticket, heard)
    }

    fn state(&self) -> State {
        self.machine.view(self.now).state
    }

    fn open(rules: Rules) -> Self {
        let mut bench = Self::new(rules);
        for _ in 0..bench.machine.rules.failures {
            bench.call(FAILURE);
        }
        assert_eq!(bench.machine.figures().state, State::Open);
        bench
    }

    fn half_open(rules: Rules) -> (Self, Ticket) {
        let mut bench = Self::open(rules);
        bench.now += i64::try_from(bench.machine.rules.open_time).unwrap();
        let probe = bench.acquire().unwrap();
        assert_eq!(bench.state(), State::HalfOpen);
        (bench, probe)
    }

    fn open_for(&self) -> i64 {
        self.machine.view(self.now).until.unwrap() - self.now
    }
}

#[test]
fn a_run_of_failures_opens_and_a_success_ends_the_run() {
    let mut bench = Bench::new(rules());
    for heard in [FAILURE, FAILURE, Heard::Success, FAILURE, FAILURE] {
        assert_eq!(bench.call(heard), None);
    }
    let change = bench.call(FAILURE).unwrap();
    assert_eq!((change.from, change.to), (State::Closed, State::Open));
    assert_eq!(change.reason, Some(TripReason::Consecutive));
    assert_eq!((change.calls, change.bad), (3, 3));
}

#[test]
fn rate_limited_and_ignored_results_leave_the_run_alone() {
    let mut bench = Bench::new(rules());
    for _ in 0..10 {
        bench.call(Heard::RateLimited { hint: 0 });
        bench.call(Heard::Ignored);
    }
    bench.call(FAILURE);
    bench.call(FAILURE);
    bench.call(Heard::RateLimited { hint: 0 });
    bench.call(Heard::Ignored);
    assert_eq!(bench.state(), State::Closed);
    bench.call(FAILURE);
    assert_eq!(bench.state(), State::Open);
}

#[test]
fn admitted_exactly_at_the_end_of_the_open_time() {
    let mut bench = Bench::open(rules());
    bench.now = 5 * SECOND - 1;
    let denied = bench.acquire().unwrap_err();
    assert_eq!((denied.why, denied.until), (Why::Open, Some(5 * SECOND)));
    assert_eq!(bench.state(), State::Open);
    bench.now += 1;
    assert_eq!(bench.state(), State::HalfOpen, "before anybody asked");
    assert!(bench.acquire().is_ok());
}

#[test]
fn two_successes_close_and_one_failure_reopens() {
    let (mut bench, probe) = Bench::half_open(rules());
    assert_eq!(bench.acquire().unwrap_err().why, Why::ProbesBusy);
    assert_eq!(bench.settle(probe, Heard::Success), None);
    let change = bench.call(Heard::Success).unwrap();
    assert_eq!(change.to, State::Closed);
    assert_eq!((change.calls, change.bad), (2, 0));

    let (mut bench, probe) = Bench::half_open(rules());
    bench.settle(probe, Heard::Success);
    let change = bench.call(FAILURE).unwrap();
    assert_eq!(change.to, State::Open);
    assert_eq!(change.reason, Some(TripReason::ProbeFailed));
}

#[test]
fn a_rate_limited_probe_is_a_failed_probe() {
    let (mut bench, probe) = Bench::half_open(rules());
    let change = bench.settle(probe, Heard::RateLimited { hint: 0 }).unwrap();
    assert_eq!(change.to, State::Open);
}

#[test]
fn open_times_double_to_the_cap_and_start_again_on_close() {
    let (mut bench, mut probe) = Bench::half_open(rules());
    for seconds in [10, 20, 40, 60, 60] {
        bench.settle(probe, FAILURE);
        assert_eq!(bench.open_for(), seconds * SECOND);
        bench.now += seconds * SECOND;
        probe = bench.acquire().unwrap();
    }
    bench.settle(probe, Heard::Success);
    bench.call(Heard::Success);
    for _ in 0..3 {
        bench.call(FAILURE);
    }
    assert_eq!(bench.open_for(), 5 * SECOND);
}

#[test]
fn jitter_adds_up_to_its_share_also_at_the_cap_and_does_not_compound() {
    let jittered = Rules {
        jitter: 200,
        ..rules()
    };
    let mut bench = Bench::new(jittered.clone());
    bench.chance = Chance::fixed(u64::MAX);
    for _ in 0..3 {
        bench.call(FAILURE);
    }
    // 6 s, then 1.2 times 10, 20, 40, 60, 60: each from the bare schedule.
    for seconds in [6, 12, 24, 48, 72, 72] {
        assert_eq!(bench.open_for(), seconds * SECOND);
        bench.now += seconds * SECOND;
        bench.call(FAILURE);
    }

    // Row 15: jitter is neither zero nor lost.
    let chance = Chance::seeded(15);
    let draws: std::collections::BTreeSet<_> = (0..2000)
        .map(|_| jittered.jittered(5000 * MS, &chance))
        .collect();
    assert!(draws.len() > 100);
    assert!(draws.first() >= Some(&(5000 * MS)) && draws.last() <= Some(&(6000 * MS)));
}

#[test]
fn a_hint_lengthens_an_open_time_and_never_shortens_it() {
    for (hint, open) in [
        (1000, 5000),
        (5001, 5001),
        (30_000, 30_000),
        (u64::MAX / MS, 900_000),
    ] {
        let mut bench = Bench::new(rules());
        bench.call(FAILURE);
        bench.call(FAILURE);
        bench.call(Heard::Failure { hint: hint * MS });
        assert_eq!(bench.machine.view(0).until, Some(open * 1_000_000));
    }
}

#[test]
fn held_trips_at_once_for_its_own_time() {
    let mut bench = Bench::new(rules());
    let change = bench.call(Heard::Held { time: 2000 * MS }).unwrap();
    assert_eq!(change.reason, Some(TripReason::Held));
    assert_eq!(bench.open_for(), 2 * SECOND);
    bench.now += 2 * SECOND;
    bench.call(Heard::Success);
    bench.call(Heard::Held { time: u64::MAX });
    assert_eq!(bench.open_for(), 900 * SECOND, "max_hold");
}

// Row 1: a probe that is cancelled or ignored gives its slot back at the same instant.
#[test]
fn row_1_an_ignored_probe_gives_its_slot_back() {
    let (mut bench, mut probe) = Bench::half_open(rules());
    for _ in 0..1000 {
        assert_eq!(bench.settle(probe, Heard::Ignored), None);
        assert_eq!(bench.state(), State::HalfOpen);
        probe = bench.acquire().expect("admitted at the same instant");
    }
}

// Row 2: it is given back by its own number, so that settling after the state moved on, or twice,
// frees no slot of another.
#[test]
fn row_2_a_drop_after_the_state_moved_on_changes_nothing() {
    let two = Rules {
        concurrent: 2,
        ..rules()
    };
    let (mut bench, first) = Bench::half_open(two);
    let second = bench.acquire().unwrap();
    bench.settle(first, FAILURE);
    bench.now += 10 * SECOND;
    let third = bench.acquire().unwrap();
    let before = bench.machine.view(bench.now);
    assert_eq!(bench.settle(second, Heard::Ignored), None);
    assert_eq!(bench.machine.view(bench.now), before);
    bench.settle(third, Heard::Ignored);
    assert_eq!(bench.machine.view(bench.now).out, 0);
}

// Row 6: an old success closes nothing, an old failure opens nothing.
#[test]
fn row_6_a_result_of_an_older_generation_is_not_heard() {
    let mut bench = Bench::new(rules());
    let old: Vec<_> = (0..10).map(|_| bench.acquire().unwrap()).collect();
    for _ in 0..3 {
        bench.call(FAILURE);
    }
    bench.now += 5 * SECOND;
    let probe = bench.acquire().unwrap();
    for ticket in &old[..5] {
        assert_eq!(bench.settle(*ticket, Heard::Success), None);
    }
    assert_eq!(bench.state(), State::HalfOpen);
    bench.settle(probe, Heard::Success);
    bench.call(Heard::Success);
    for ticket in &old[5..] {
        assert_eq!(bench.settle(*ticket, FAILURE), None);
    }
    assert_eq!(bench.machine.view(bench.now).run, 0);
}

// Row 7: no second opening, no longer open time.
#[test]
fn row_7_late_failures_neither_open_again_nor_prolong() {
    let mut bench = Bench::new(rules());
    let late: Vec<_> = (0..10).map(|_| bench.acquire().unwrap()).collect();
    let mut opened = 0;
    for ticket in late {
        bench.now += SECOND / 10;
        let hint = 60_000 * MS;
        opened += usize::from(bench.settle(ticket, Heard::Failure { hint }).is_some());
    }
    assert_eq!(opened, 1);
    assert_eq!(bench.machine.view(bench.now).trips, 1);
    assert_eq!(
        bench.machine.view(bench.now).until,
        Some(3 * SECOND / 10 + 60 * SECOND),
        "counted from the third failure"
    );
}

// Row 8: a clock that goes back neither opens early nor keeps it open for longer.
#[test]
fn row_8_the_clock_goes_back() {
    let mut bench = Bench::open(rules());
    bench.now = -30 * DAY;
    assert_eq!(bench.acquire().unwrap_err().until, Some(5 * SECOND));
    assert_eq!(bench.state(), State::Open);
    bench.now = 5 * SECOND;
    let probe = bench.acquire().unwrap();
    bench.now = -DAY;
    assert_eq!(bench.acquire().unwrap_err().why, Why::ProbesBusy);
    bench.settle(probe, Heard::Success);
    bench.call(Heard::Success);
    assert_eq!(bench.state(), State::Closed);
}

// Row 9: after a sleep of days the state is what the clock says, in one step.
#[test]
fn row_9_the_clock_jumps_by_days() {
    let mut bench = Bench::open(rules());
    bench.now += 40 * DAY;
    assert_eq!(bench.state(), State::HalfOpen);
    let probe = bench.acquire().unwrap();
    bench.now += 40 * DAY;
    bench.settle(probe, FAILURE);
    assert_eq!(bench.open_for(), 10 * SECOND);

    let mut bench = Bench::new(rules());
    bench.call(FAILURE);
    bench.call(FAILURE);
    bench.now += 60 * DAY;
    bench.call(FAILURE);
    assert_eq!(bench.state(), State::Open, "a run has no age");
}

// Row 14.
#[test]
fn row_14_the_longest_open_time_does_not_overflow() {
    for now in [0, i64::MIN, i64::MAX] {
        let mut bench = Bench::new(Rules {
            open_time: u64::MAX,
            max_open_time: u64::MAX,
            jitter: 1000,
            growth: 1_000_000,
            max_hold: u64::MAX,
            ..rules()
        });
        bench.now = now;
        bench.chance = Chance::fixed(u64::MAX);
        for _ in 0..3 {
            bench.call(Heard::Failure { hint: u64::MAX });
        }
        bench.machine.grow();
        bench.now = bench.now.max(i64::MAX - 1);
        let state = bench.state();
        // At the end of time itself nothing is left of any open time.
        let ended = now == i64::MAX;
        assert_eq!(state == State::HalfOpen, ended, "{now}");
    }
}

// Row 32: neither a spin nor a wedge.
#[test]
fn row_32_open_for_no_time_or_a_nanosecond() {
    for open_time in [0, 1] {
        let mut bench = Bench::new(Rules {
            open_time,
            ..rules()
        });
        for _ in 0..3 {
            bench.call(FAILURE);
        }
        for _ in 0..1000 {
            bench.now += bench.open_for_or_zero();
            let probe = bench.acquire().unwrap();
            bench.settle(probe, FAILURE);
        }
        bench.now += bench.open_for_or_zero();
        bench.call(Heard::Success);
        bench.call(Heard::Success);
        assert_eq!(bench.state(), State::Closed);
    }
}

impl Bench {
    fn open_for_or_zero(&self) -> i64 {
        self.machine
            .view(self.now)
            .until
            .map_or(0, |until| until - self.now)
    }
}

// Row 33: no open time ends what was opened by hand.
#[test]
fn row_33_forced_open_outlasts_the_open_time() {
    let (mut bench, probe) = Bench::half_open(rules());
    assert!(bench.machine.force_open(bench.now).is_some());
    assert_eq!(bench.machine.force_open(bench.now), None);
    bench.settle(probe, Heard::Success);
    bench.now += 400 * DAY;
    assert_eq!(bench.acquire(), Err(Denied::FORCED));
    assert_eq!(bench.state(), State::ForcedOpen);
    assert!(bench.machine.force_close(bench.now).is_some());
    assert_eq!(bench.machine.force_close(bench.now), None);
    bench.call(Heard::Success);
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn reset_forgets_counts_and_calls_under_way() {
    let mut bench = Bench::new(rules());
    let old = bench.acquire().unwrap();
    bench.call(FAILURE);
    bench.call(FAILURE);
    bench.machine.reset(0);
    bench.settle(old, FAILURE);
    let view = bench.machine.view(0);
    assert_eq!((view.state, view.run, view.trips), (State::Closed, 0, 0));
}

#[test]
fn a_probe_that_hangs_keeps_its_slot_for_a_lease_and_is_still_heard() {
    let (mut bench, hung) = Bench::half_open(rules());
    let denied = bench.acquire().unwrap_err();
    assert_eq!(denied.until, Some(bench.now + 5 * SECOND));
    bench.now += 5 * SECOND - 1;
    assert!(bench.acquire().is_err());
    bench.now += 1;
    let second = bench.acquire().expect("one more");
    assert!(bench.acquire().is_err(), "and not two");
    assert_eq!(bench.state(), State::HalfOpen);
    bench.settle(second, Heard::Success);
    let change = bench.settle(hung, Heard::Success).unwrap();
    assert_eq!(change.to, State::Closed);
}

#[test]
fn a_lease_lasts_at_least_a_second_and_admits_one_probe_however_many_hang() {
    let mut bench = Bench::open(Rules {
        open_time: 0,
        concurrent: 3,
        close_after: 3,
        ..rules()
    });
    for _ in 0..3 {
        bench.acquire().unwrap();
    }
    bench.now += SECOND - 1;
    assert!(bench.acquire().is_err());
    bench.now += 1;
    assert!(bench.acquire().is_ok());
    assert!(bench.acquire().is_err());
    bench.now += SECOND;
    assert!(bench.acquire().is_ok());
    assert!(bench.acquire().is_err());
}

#[test]
fn never_more_probes_than_the_verdict_needs() {
    // 2 successes or 2 failures: the verdict is sure after 3.
    let (mut bench, first) = Bench::half_open(Rules {
        concurrent: 10,
        reopen_after: 2,
        ..rules()
    });
    bench.acquire().unwrap();
    bench.acquire().unwrap();
    assert!(bench.acquire().is_err());
    bench.settle(first, Heard::Success);
    assert!(bench.acquire().is_err(), "a settled one still counts");
}
