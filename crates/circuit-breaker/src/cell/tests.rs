use std::sync::{
    Barrier,
    atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
};
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::{
    BreakerConfig, Rule,
    machine::{
        Why,
        tests::{
            brownout::Target,
            model::{Step, any_rules, by_hand},
        },
    },
    state::TripReason,
};

const FAILURE: Heard = Heard::Failure { hint: 0 };

fn rules() -> Rules {
    Rules {
        failures: 3,
        windows: Vec::new(),
        spans: Vec::new(),
        brownout: None,
        ramp: 0,
        open_time: 1000,
        max_open_time: 1000,
        growth: 1000,
        jitter: 0,
        concurrent: 1,
        close_after: 2,
        reopen_after: 1,
        max_hold: 1000,
    }
}

/// Stops the other threads, also when the one that holds it panics.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn acquire(cell: &Cell, now: Nanos) -> Result<Ticket, Denied> {
    cell.acquire(|| now, &Chance::fixed(0))
}

fn settle(cell: &Cell, ticket: Ticket, heard: Heard, now: Nanos) {
    cell.settle(ticket, heard, 0, || now, &Chance::fixed(0));
}

fn new(rules: Rules) -> Cell {
    Cell::new(Arc::new(rules))
}

fn call(cell: &Cell, heard: Heard, now: Nanos) {
    let ticket = acquire(cell, now).expect("admitted");
    settle(cell, ticket, heard, now);
}

fn state(cell: &Cell, now: Nanos) -> State {
    cell.state(|| now)
}

#[test]
fn shows_what_the_machine_is_in() {
    let cell = new(rules());
    assert_eq!(state(&cell, 0), State::Closed);
    for _ in 0..3 {
        call(&cell, FAILURE, 0);
    }
    assert_eq!(state(&cell, 999), State::Open);
    let denied = acquire(&cell, 999).unwrap_err();
    assert_eq!(denied, Denied::open(1000, TripReason::Consecutive));
    assert_eq!(cell.refuses(|| 999), Some(denied));
    assert_eq!(cell.refuses(|| 1000), None);
    assert_eq!(state(&cell, 1000), State::HalfOpen);
    let probe = acquire(&cell, 1000).unwrap();
    assert_eq!(acquire(&cell, 1000).unwrap_err().why, Why::ProbesBusy);
    settle(&cell, probe, FAILURE, 1000);
    assert_eq!(
        acquire(&cell, 1000).unwrap_err(),
        Denied::open(2000, TripReason::ProbeFailed)
    );
    cell.change(9000, |m| m.force_open(9000));
    assert_eq!(acquire(&cell, 9000).unwrap_err(), Denied::FORCED);
    assert_eq!(state(&cell, 9000), State::ForcedOpen);
    cell.change(9000, |m| m.force_close(9000));
    call(&cell, Heard::Success, 9000);
}

#[test]
fn the_clean_path_asks_no_clock() {
    let cell = new(rules());
    let ticket = cell
        .acquire(|| panic!("asked for the time"), &Chance::fixed(0))
        .unwrap();
    let late = || panic!("asked for the time");
    cell.settle(ticket, Heard::Success, 0, late, &Chance::fixed(0));
}

#[test]
fn a_success_ends_the_run() {
    let cell = new(rules());
    for _ in 0..10 {
        call(&cell, FAILURE, 0);
        call(&cell, FAILURE, 0);
        assert_eq!(cell.view(0).run, 2);
        call(&cell, Heard::Success, 0);
        assert_eq!(cell.view(0).run, 0);
    }
    assert_eq!(state(&cell, 0), State::Closed);
}

#[test]
fn a_success_of_an_older_generation_neither_ends_a_run_nor_undoes_what_ended_one() {
    let recovered = || {
        let cell = new(rules());
        let old = acquire(&cell, 0).unwrap();
        for _ in 0..3 {
            call(&cell, FAILURE, 0);
        }
        call(&cell, Heard::Success, 1000);
        call(&cell, Heard::Success, 1000);
        assert_eq!(state(&cell, 1000), State::Closed);
        call(&cell, FAILURE, 1000);
        call(&cell, FAILURE, 1000);
        (cell, old)
    };
    let (cell, old) = recovered();
    settle(&cell, old, Heard::Success, 1000);
    call(&cell, FAILURE, 1000);
    assert_eq!(state(&cell, 1000), State::Open);

    let (cell, old) = recovered();
    call(&cell, Heard::Success, 1000);
    settle(&cell, old, Heard::Success, 1000);
    call(&cell, FAILURE, 1000);
    assert_eq!(cell.view(1000).run, 1);
}

// A success that was over before a failure began ends the run, whatever other threads do.
#[test]
fn no_success_is_lost_between_threads() {
    let cell = &new(rules());
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    call(cell, Heard::Success, 0);
                }
            });
        }
        let _stop = Stop(stop);
        for _ in 0..20_000 {
            call(cell, FAILURE, 0);
            call(cell, FAILURE, 0);
            call(cell, Heard::Success, 0);
        }
    });
    assert_eq!(cell.view(0).trips, 0);
}

// Row 5: 8 threads at the very end of the open time: exactly the allowed probes get in.
#[test]
fn row_5_a_rush_at_the_end_of_the_open_time() {
    for concurrent in [1, 2, 3] {
        let rules = Rules {
            concurrent,
            close_after: 4,
            ..rules()
        };
        for _ in 0..200 {
            let cell = &new(rules.clone());
            for _ in 0..3 {
                call(cell, FAILURE, 0);
            }
            let barrier = &Barrier::new(8);
            let admitted = &AtomicU32::new(0);
            thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        barrier.wait();
                        if acquire(cell, 1000).is_ok() {
                            admitted.fetch_add(1, SeqCst);
                        }
                    });
                }
            });
            assert_eq!(admitted.load(SeqCst), concurrent);
        }
    }
}

// Row 5: completion races with admission: never more probes at once than allowed, and never more
// than the verdict needs.
#[test]
fn row_5_completion_races_with_admission() {
    let rules = Rules {
        concurrent: 2,
        close_after: u32::MAX,
        ..rules()
    };
    let cell = &new(rules.clone());
    for _ in 0..3 {
        call(cell, FAILURE, 0);
    }
    let (out, most) = (&AtomicU32::new(0), &AtomicU32::new(0));
    let barrier = &Barrier::new(4);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                barrier.wait();
                for i in 0..5000 {
                    let Ok(probe) = acquire(cell, 1000) else {
                        continue;
                    };
                    most.fetch_max(out.fetch_add(1, SeqCst) + 1, SeqCst);
                    // Before the slot is given back: another may have it at once.
                    out.fetch_sub(1, SeqCst);
                    let heard = if i % 2 == 0 {
                        Heard::Success
                    } else {
                        Heard::Ignored
                    };
                    settle(cell, probe, heard, 1000);
                }
            });
        }
    });
    assert!(most.load(SeqCst) <= 2);
    assert_eq!(cell.view(1000).out, 0);
    assert!(acquire(cell, 1000).is_ok(), "no slot is lost");

    for _ in 0..200 {
        let cell = &new(Rules {
            concurrent: 8,
            close_after: 3,
            reopen_after: 2,
            ..rules.clone()
        });
        for _ in 0..3 {
            call(cell, FAILURE, 0);
        }
        let probes = &AtomicU32::new(0);
        let barrier = &Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    for _ in 0..4 {
                        if let Ok(ticket) = acquire(cell, 1000) {
                            probes.fetch_add(u32::from(ticket.probe.is_some()), SeqCst);
                            settle(cell, ticket, Heard::Success, 1000);
                        }
                    }
                });
            }
        });
        assert!(probes.load(SeqCst) <= 4, "3 + 2 - 1");
        assert_eq!(state(cell, 1000), State::Closed);
    }
}

// A refusal never pairs the word of one open period with the end of another.
#[test]
fn a_refusal_is_of_one_piece() {
    let cell = &new(Rules {
        failures: 1,
        close_after: 1,
        ..rules()
    });
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !stop.load(SeqCst) {
                    // The end says by its last digit why it was opened.
                    if let Some(denied) = cell.refuses(|| 0) {
                        let until = denied.until.unwrap();
                        let held = denied.reason == Some(TripReason::Held);
                        assert_eq!(until % 2 == 1, held, "{denied:?}");
                        assert!(until >= last);
                        last = until;
                    }
                }
            });
        }
        let _stop = Stop(stop);
        let mut now = 0;
        for _ in 0..20_000 {
            call(cell, FAILURE, now);
            now += 1000;
            call(cell, Heard::Success, now);
            call(cell, Heard::Held { time: 999 }, now);
            now += 1000;
            call(cell, Heard::Success, now);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    // What is counted apart, without the lock, changes nothing that anybody could see.
    #[test]
    fn the_cell_does_what_the_machine_does(
        rules in any_rules(),
        ramp in prop_oneof![Just(0), Just(3000u64)],
        steps in prop::collection::vec(any::<u64>(), 1..100),
    ) {
        let rules = Arc::new(Rules { ramp: ramp * 1_000_000, ..rules });
        let chance = Chance::fixed(1 << 63);
        let (cell, mut machine) = (Cell::new(Arc::clone(&rules)), Machine::new(rules));
        let (mut now, mut out) = (0, Vec::new());
        for step in steps {
            let change = match Step::from(step) {
                Step::Acquire => {
                    let (wanted, change) = machine.acquire(now, &chance);
                    let got = cell.acquire(|| now, &chance);
                    prop_assert_eq!(got, wanted);
                    out.extend(got.ok());
                    change
                }
                Step::Settle(i, heard, took) if !out.is_empty() => {
                    let ticket = out.swap_remove(i % out.len());
                    let took = u64::from(took) * 1_000_000;
                    cell.settle(ticket, heard, took, || now, &chance);
                    machine.settle(ticket, heard, took, now, &chance)
                }
                Step::Settle(..) => None,
                // Calls that are counted apart are told by their time.
                Step::Move(ms) if ms < 0 => None,
                Step::Move(ms) => {
                    now += i64::from(ms) * 1_000_000;
                    None
                }
                step => {
                    cell.change(now, |machine| by_hand(machine, &step, now));
                    by_hand(&mut machine, &step, now)
                }
            };
            let mut said = Vec::new();
            cell.deliver(|change| said.push(*change));
            prop_assert_eq!(said, Vec::from_iter(change));
            prop_assert_eq!(cell.state(|| now), machine.view(now).state);
            prop_assert_eq!(cell.refuses(|| now).is_some(), machine.view(now).state.is_refusing());
            if step % 3 == 0 {
                prop_assert_eq!(cell.view(now), machine.view(now));
            }
        }
    }
}

/// Calls a second apart through a cell; after how many it opened.
fn calls(cell: &Cell, now: &mut Nanos, target: &mut Target, most: usize) -> Option<usize> {
    (1..=most).find(|_| {
        *now += 1_000_000_000;
        let (heard, took) = target.answer();
        let ticket = acquire(cell, *now).expect("closed");
        cell.settle(ticket, heard, took, || *now, &Chance::fixed(0));
        state(cell, *now) == State::Open
    })
}

// Fast calls are learnt from later here, with the next one that is not: the rule must not suffer.
#[test]
fn a_brownout_is_seen_through_the_cell_too() {
    let config = BreakerConfig::new().rules([Rule::brownout()]);
    let rules = config.check().unwrap().rules;
    for seed in 0..20 {
        let learnt = || {
            let (cell, mut now, mut target) = (Cell::new(Arc::clone(&rules)), 0, Target::new(seed));
            assert_eq!(calls(&cell, &mut now, &mut target, 400), None);
            (cell, now, target)
        };
        let (cell, mut now, mut target) = learnt();
        target.slower = 6.0;
        assert!(calls(&cell, &mut now, &mut target, 30).is_some(), "{seed}");
        let (cell, mut now, mut target) = learnt();
        target.hangs = 0.1;
        assert!(calls(&cell, &mut now, &mut target, 300).is_some(), "{seed}");
        let (cell, mut now, mut target) = learnt();
        target.stragglers = 0.02;
        assert_eq!(calls(&cell, &mut now, &mut target, 10_000), None, "{seed}");
    }
}
