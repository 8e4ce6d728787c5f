use std::{
    future::Future,
    sync::{Arc, Mutex},
};

use tokio::time::{advance, timeout};
use tower_circuit_breaker::{Breaker, State, TripReason};

use crate::support::*;

fn fail(breaker: &Breaker, times: u32) {
    for _ in 0..times {
        breaker.permit().unwrap().failure();
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_has_the_counts_that_caused_it() {
    let breaker = Breaker::new("opus", config()).unwrap();
    let mut events = breaker.events(10);
    breaker.permit().unwrap().success();
    fail(&breaker, 3);
    let event = events.next().await.unwrap();
    assert_eq!(event.target.as_ref().unwrap().as_str(), "opus");
    assert_eq!((event.from, event.to), (State::Closed, State::Open));
    assert_eq!(event.reason, Some(TripReason::Consecutive));
    assert_eq!(event.open_for, Some(5 * SECOND));
    assert_eq!((event.calls, event.bad), (3, 3));
    advance(5 * SECOND).await;
    assert_eq!(events.try_next(), None, "looking and time change nothing");
    breaker.permit().unwrap().success();
    breaker.permit().unwrap().success();
    let tos: Vec<_> = std::iter::from_fn(|| events.try_next())
        .map(|event| (event.to, event.calls, event.bad))
        .collect();
    assert_eq!(tos, [(State::HalfOpen, 0, 0), (State::Closed, 2, 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_bounded_wakes_and_ends_with_its_breaker() {
    let breaker = Breaker::new("opus", config()).unwrap();
    let mut events = breaker.events(2);
    for _ in 0..3 {
        breaker.force_open();
        breaker.force_close();
    }
    assert_eq!(events.missed(), 4);
    assert_eq!(events.next().await.unwrap().to, State::ForcedOpen);
    assert_eq!(events.next().await.unwrap().to, State::Closed);
    assert!(timeout(SECOND, events.next()).await.is_err());
    let waiting = tokio::spawn(async move { (events.next().await, events.next().await) });
    tokio::task::yield_now().await;
    breaker.force_open();
    tokio::task::yield_now().await;
    drop(breaker);
    let (event, end) = waiting.await.unwrap();
    assert_eq!(event.unwrap().to, State::ForcedOpen);
    assert_eq!(end, None);
}

// Row 34, by callback: it looks at the breaker and changes it, and hears of that after.
#[tokio::test(start_paused = true)]
async fn row_34_a_callback_may_look_and_change() {
    let slot = Arc::new(Mutex::new(None::<Breaker>));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (of, into) = (Arc::clone(&slot), Arc::clone(&heard));
    let config = config().on_event(move |event| {
        let breaker = of.lock().unwrap().clone().unwrap();
        into.lock().unwrap().push((event.to, breaker.state()));
        if event.to == State::Open {
            breaker.force_open();
            assert_eq!(breaker.state(), State::ForcedOpen);
        }
    });
    let breaker = Breaker::new("opus", config).unwrap();
    *slot.lock().unwrap() = Some(breaker.clone());
    fail(&breaker, 3);
    let both = [
        (State::Open, State::Open),
        (State::ForcedOpen, State::ForcedOpen),
    ];
    assert_eq!(*heard.lock().unwrap(), both);
    slot.lock().unwrap().take();
}

#[tokio::test(start_paused = true)]
async fn a_callback_that_panics_keeps_nobody_from_hearing() {
    let config = config().on_event(|event| assert_ne!(event.to, State::ForcedOpen, "mine"));
    let breaker = Breaker::new("opus", config).unwrap();
    let mut events = breaker.events(10);
    let opening = breaker.clone();
    let panicked = tokio::spawn(async move { opening.force_open() });
    assert!(panicked.await.unwrap_err().is_panic());
    breaker.force_close();
    assert_eq!(events.try_next().unwrap().to, State::Closed);
    assert_eq!(breaker.state(), State::Closed);
}

#[test]
fn the_future_of_an_event_is_send() {
    fn check<T: Future + Send>(_: &T) {}
    let breaker = Breaker::new("opus", config()).unwrap();
    check(&breaker.events(1).next());
}
