//! Real threads on one shared breaker.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::{
    sync::{
        Barrier, Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use tower_circuit_breaker::{Breaker, BreakerConfig, Refusal, Rule, State};

const HOUR: Duration = Duration::from_secs(3600);

fn config() -> BreakerConfig {
    BreakerConfig::new().jitter(0.0)
}

// Rows 4 and 5: threads that acquire, settle and drop: never more probes out than allowed.
#[test]
fn rows_4_and_5_never_more_probes_than_allowed() {
    let breaker =
        &Breaker::new("stress", config().probes_at_once(3).close_after(u32::MAX)).unwrap();
    breaker.half_open();
    let (out, most, probes) = (&AtomicU32::new(0), &AtomicU32::new(0), &AtomicU32::new(0));
    let barrier = &Barrier::new(8);
    thread::scope(|scope| {
        for worker in 0..8 {
            scope.spawn(move || {
                barrier.wait();
                for round in 0..2000 {
                    let Ok(permit) = breaker.permit() else {
                        continue;
                    };
                    probes.fetch_add(1, SeqCst);
                    most.fetch_max(out.fetch_add(1, SeqCst) + 1, SeqCst);
                    if round % 16 == 0 {
                        thread::yield_now();
                    }
                    // Before the slot is given back: another may have it at once.
                    out.fetch_sub(1, SeqCst);
                    if (worker + round) % 2 == 0 {
                        permit.success();
                    }
                }
            });
        }
    });
    assert!(probes.load(SeqCst) > 0);
    assert!(most.load(SeqCst) <= 3, "{most:?}");
    assert_eq!(breaker.snapshot().probes_out, 0);
    assert!(breaker.permit().is_ok(), "no slot is lost");
}

// What is counted without the lock is all there, while other threads make the machine collect it.
#[test]
fn every_call_is_counted_once() {
    let rules = [Rule::rate(1.0, u32::MAX, HOUR)];
    let breaker = &Breaker::new("stress", config().rules(rules)).unwrap();
    let done = &AtomicU64::new(0);
    thread::scope(|scope| {
        for worker in 0..6 {
            scope.spawn(move || {
                for _ in 0..20_000 {
                    let permit = breaker.permit().unwrap();
                    if worker == 0 {
                        permit.failure();
                    } else {
                        permit.success();
                    }
                    done.fetch_add(1, SeqCst);
                }
            });
        }
        scope.spawn(move || {
            while done.load(SeqCst) < 120_000 {
                assert!(breaker.snapshot().calls <= 120_000);
                thread::yield_now();
            }
        });
    });
    let snapshot = breaker.snapshot();
    assert_eq!((snapshot.calls, snapshot.bad_calls), (120_000, 20_000));
}

// Row 34: events of many threads, by callback and by stream, are one unbroken story.
#[test]
fn events_are_in_order_whoever_causes_them() {
    static STORY: Mutex<Vec<(State, State, u64)>> = Mutex::new(Vec::new());
    let breaker = &Breaker::new(
        "stress",
        config().failures(1).on_event(|event| {
            STORY
                .lock()
                .unwrap()
                .push((event.from, event.to, event.generation))
        }),
    )
    .unwrap();
    let mut events = breaker.events(16);
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(move || {
                while !stop.load(SeqCst) {
                    match breaker.permit() {
                        Ok(permit) => permit.failure(),
                        Err(refused) => assert!(matches!(
                            refused.refusal(),
                            Refusal::Open | Refusal::ForcedOpen | Refusal::ProbesBusy
                        )),
                    }
                }
            });
        }
        for round in 0..2000 {
            match round % 4 {
                0 => breaker.force_open(),
                1 => breaker.force_close(),
                2 => breaker.force_open_for(HOUR),
                _ => breaker.reset(),
            }
        }
        stop.store(true, SeqCst);
    });
    // One more, so that nothing of what other threads were handing over is still to come.
    breaker.reset();
    let story = STORY.lock().unwrap();
    assert!(story.len() >= 1500);
    for pair in story.windows(2) {
        assert_eq!(pair[0].1, pair[1].0, "it goes on where it was");
        assert!(pair[0].2 < pair[1].2);
    }
    let last: Vec<_> = std::iter::from_fn(|| events.try_next()).collect();
    assert_eq!(last.len(), 16, "as many as were asked for");
    assert_eq!(events.missed(), story.len() as u64 - 16);
    let tail = &story[story.len() - 16..];
    assert!(
        last.iter()
            .zip(tail)
            .all(|(event, story)| event.generation == story.2)
    );
}
