//! Every interleaving of two or three threads, by loom:
//!
//! `RUSTFLAGS="--cfg spillway_loom" cargo test -p tower-circuit-breaker --lib models`

use loom::{sync::Mutex, thread};

use super::*;
use crate::{
    machine::{Bad, Most, Why, WindowRule},
    state::TripReason,
};

const FAILURE: Heard = Heard::Failure { hint: 0 };

/// Two failures of ten calls in a time trip, three in a row too.
fn rules() -> Rules {
    Rules {
        failures: 2,
        windows: vec![WindowRule {
            span: 0,
            last: None,
            bad: Bad::Failed,
            most: Most::Number(9),
            reason: TripReason::Rate,
        }],
        spans: vec![10_000],
        brownout: None,
        open_time: 1000,
        max_open_time: 1000,
        growth: 1000,
        jitter: 0,
        concurrent: 1,
        close_after: 1,
        reopen_after: 1,
        max_hold: 1000,
        ramp: 0,
    }
}

fn cell() -> Arc<Cell> {
    Arc::new(Cell::new(Arc::new(rules())))
}

fn acquire(cell: &Cell, now: Nanos) -> Result<Ticket, Denied> {
    cell.acquire(|| now, &Chance::fixed(0))
}

fn settle(cell: &Cell, ticket: Ticket, heard: Heard, now: Nanos) {
    cell.settle(ticket, heard, 0, || now, &Chance::fixed(0));
}

fn call(cell: &Cell, heard: Heard, now: Nanos) {
    settle(cell, acquire(cell, now).unwrap(), heard, now);
}

/// Open until 1000.
fn opened() -> Arc<Cell> {
    let cell = cell();
    call(&cell, FAILURE, 0);
    call(&cell, FAILURE, 0);
    assert_eq!(cell.state(|| 0), State::Open);
    cell
}

/// Runs each on a thread of its own.
fn race<A, B, X, Y>(cell: &Arc<Cell>, one: A, other: B) -> (X, Y)
where
    A: FnOnce(&Cell) -> X,
    B: FnOnce(&Cell) -> Y + 'static,
    Y: 'static,
{
    let there = Arc::clone(cell);
    let other = thread::spawn(move || other(&there));
    let one = one(cell);
    (one, other.join().unwrap())
}

#[test]
fn models_one_probe_at_the_end_of_the_open_time() {
    loom::model(|| {
        let cell = opened();
        let (one, other) = race(&cell, |c| acquire(c, 1000), |c| acquire(c, 1000));
        assert_eq!(usize::from(one.is_ok()) + usize::from(other.is_ok()), 1);
        let denied = one.err().or(other.err()).unwrap();
        assert_eq!(denied.why, Why::ProbesBusy);
        assert_eq!(cell.view(1000).out, 1);
    });
}

#[test]
fn models_a_probe_given_back_is_free_and_given_back_once() {
    loom::model(|| {
        let cell = opened();
        let probe = acquire(&cell, 1000).unwrap();
        let (next, ()) = race(
            &cell,
            |c| acquire(c, 1000),
            move |c| settle(c, probe, Heard::Ignored, 1000),
        );
        assert_eq!(cell.view(1000).out, usize::from(next.is_ok()));
        if let Ok(next) = next {
            settle(&cell, next, Heard::Ignored, 1000);
        }
        assert!(acquire(&cell, 1000).is_ok(), "no slot is lost");
    });
}

#[test]
fn models_a_probe_settles_while_somebody_opens_by_hand() {
    loom::model(|| {
        let cell = opened();
        let probe = acquire(&cell, 1000).unwrap();
        race(
            &cell,
            |c| c.change(1000, |machine| machine.force_open(1000)),
            move |c| settle(c, probe, Heard::Success, 1000),
        );
        assert_eq!(cell.state(|| 1000), State::ForcedOpen);
    });
}

// What is counted apart is lost neither to the thread that collects it nor to one that counts too.
#[test]
fn models_no_success_is_lost() {
    loom::model(|| {
        let cell = cell();
        race(
            &cell,
            |c| {
                call(c, Heard::Success, 0);
                call(c, FAILURE, 0);
            },
            |c| call(c, Heard::Success, 1),
        );
        let view = cell.view(1);
        assert_eq!((view.calls, view.bad), (3, 1));
        assert!(view.run <= 1);
    });
}

// A success that was over before a failure ends the run that came before it.
#[test]
fn models_a_success_ends_the_run_before_it() {
    loom::model(|| {
        let cell = cell();
        call(&cell, FAILURE, 0);
        race(
            &cell,
            |c| {
                call(c, Heard::Success, 0);
                call(c, FAILURE, 0);
            },
            |c| call(c, Heard::Success, 0),
        );
        assert_eq!(cell.state(|| 0), State::Closed);
    });
}

// Row 6, without the lock: a success of an earlier generation is in no count of this one.
#[test]
fn models_a_success_of_an_older_generation_is_not_counted() {
    loom::model(|| {
        let cell = cell();
        let old = acquire(&cell, 0).unwrap();
        race(
            &cell,
            |c| c.change(0, |machine| Some(machine.reset(0))),
            move |c| settle(c, old, Heard::Success, 0),
        );
        assert_eq!(cell.view(0).calls, 0);
        call(&cell, FAILURE, 0);
        call(&cell, FAILURE, 0);
        assert_eq!(cell.state(|| 0), State::Open, "it ended no run of this one");
    });
}

// From one open period to another without a state between.
#[test]
fn models_a_refusal_is_of_one_piece() {
    loom::model(|| {
        let cell = opened();
        let (denied, ()) = race(
            &cell,
            |c| c.refuses(|| 0),
            |c| c.change(0, |machine| Some(machine.force_open_for(7, 0))),
        );
        let pairs = [
            (Some(1000), Some(TripReason::Consecutive)),
            (Some(7), Some(TripReason::ByHand)),
        ];
        // Not refused without a lock in the moment of the change.
        assert!(denied.is_none_or(|d| pairs.contains(&(d.until, d.reason))));
        let sure = acquire(&cell, 0).unwrap_err();
        assert_eq!((sure.until, sure.reason), pairs[1]);
    });
}

// Row 34: what two threads cause is said once, and in order, whoever says it.
#[test]
fn models_events_are_said_once_and_in_order() {
    loom::model(|| {
        let cell = cell();
        let said = Arc::new(Mutex::new(Vec::new()));
        let (here, there) = (Arc::clone(&said), Arc::clone(&said));
        race(
            &cell,
            move |c| {
                c.change(0, |machine| machine.force_open(0));
                c.deliver(|change| here.lock().unwrap().push(change.generation));
            },
            move |c| {
                c.change(0, |machine| machine.disable(0));
                c.deliver(|change| there.lock().unwrap().push(change.generation));
            },
        );
        assert_eq!(*said.lock().unwrap(), [2, 3]);
    });
}
