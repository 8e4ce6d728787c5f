use std::time::Duration;

use tokio::time::advance;
use tower::{Layer, Service, ServiceExt};
use tower_circuit_breaker::{Rule, State, TripReason};
use tower_spillway_core::{Abandoned, Class};

use crate::support::*;

fn slow() -> Rule {
    Rule::slow(SECOND, 0.5, 4, 30 * SECOND)
}

#[tokio::test(start_paused = true)]
async fn slow_answers_trip_by_how_long_they_took() {
    let layer = layer(config().rules([slow()]));
    let late = SECOND + Duration::from_nanos(1);
    for (took, state) in [(SECOND, State::Closed), (late, State::Open)] {
        let steps = answer(Class::Success).after(took);
        let mut service = layer.layer(Upstream::always(steps));
        for _ in 0..4 {
            send(&mut service, request()).await.unwrap();
            advance(SECOND).await;
        }
        // What sleeps to a millisecond is not late by less.
        let expected = if took == late { state } else { State::Closed };
        assert_eq!(layer.unnamed_breaker().state(), expected);
        layer.unnamed_breaker().reset();
    }
}

// A hedge that lost says that the target was slow, and only where a rule asks for that.
#[tokio::test(start_paused = true)]
async fn lost_hedges_are_slow_results() {
    for (rule, state) in [
        (slow(), State::Open),
        (Rule::rate(0.1, 1, SECOND), State::Closed),
    ] {
        let layer = layer(config().rules([rule]));
        let mut service = layer.layer(Upstream::always(
            tower_spillway_core::testing::script::Step::hang(),
        ));
        for _ in 0..4 {
            let (request, leg) = request_to("opus");
            let call = service.ready().await.unwrap().call(request);
            leg.abandon(Abandoned::HedgeLost);
            drop(call);
        }
        assert_eq!(layer.breaker("opus").state(), state);
    }
}

#[tokio::test(start_paused = true)]
async fn each_rule_names_itself_in_refusals() {
    let minute = 60 * SECOND;
    for (rule, reason) in [
        (Rule::run(2), TripReason::Consecutive),
        (Rule::rate(0.5, 2, minute), TripReason::Rate),
        (Rule::number(2, minute), TripReason::Rate),
        (Rule::rate_of_last(0.5, 2, 4), TripReason::RateOfLast),
        (
            Rule::number_of_last(2, 4).within(minute),
            TripReason::RateOfLast,
        ),
    ] {
        let layer = layer(config().rules([rule]));
        let mut service = layer.layer(Upstream::always(answer(Class::Transient)));
        for _ in 0..2 {
            send(&mut service, request()).await.unwrap();
        }
        let snapshot = layer.unnamed_breaker().snapshot();
        assert_eq!(snapshot.reason, Some(reason));
        let refused = refused(&mut service).await;
        assert_eq!(refused.detail(), Some(reason.as_str()));
        assert_eq!(refused.wait(), Some(5 * SECOND));
    }
}

// The last calls are forgotten when they are too old.
#[tokio::test(start_paused = true)]
async fn no_older_than() {
    let rule = Rule::number_of_last(3, 20).within(60 * SECOND);
    let layer = layer(config().rules([rule]));
    let mut service = layer.layer(Upstream::always(answer(Class::Transient)));
    for _ in 0..10 {
        send(&mut service, request()).await.unwrap();
        advance(31 * SECOND).await;
    }
    assert_eq!(layer.unnamed_breaker().state(), State::Closed);
    assert_eq!(layer.unnamed_breaker().snapshot().bad_calls, 1);
}
