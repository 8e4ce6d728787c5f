use tower::Layer;
use tower_circuit_breaker::{Breaker, Control, State};
use tower_spillway_core::Class;

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn one_control_over_many_and_over_those_who_come_later() {
    let control = Control::new();
    let layer = layer(config().control(&control));
    let (opus, gemini) = (layer.breaker("opus"), layer.breaker("gemini"));
    let states = |expected| {
        assert_eq!([opus.state(), gemini.state()], [expected, expected]);
    };
    control.force_open();
    states(State::ForcedOpen);
    assert_eq!(layer.breaker("mistral").state(), State::ForcedOpen);
    control.force_close();
    states(State::Closed);
    assert_eq!(layer.breaker("groq").state(), State::Closed);
    control.disable();
    states(State::Disabled);
    control.metrics_only();
    states(State::MetricsOnly);
    control.force_open_for(SECOND);
    states(State::Open);
    control.reset();
    states(State::Closed);
    assert_eq!(control.breakers().len(), 4);

    let alone = Breaker::new("alone", config()).unwrap();
    control.add(&alone);
    control.force_open();
    assert_eq!(alone.state(), State::ForcedOpen);
    drop(alone);
    assert_eq!(control.breakers().len(), 4, "it keeps none alive");
}

#[tokio::test(start_paused = true)]
async fn disabled_and_counting_breakers_refuse_nothing() {
    let layer = layer(config());
    let breaker = layer.unnamed_breaker();
    let mut service = layer.layer(Upstream::always(answer(Class::TargetDown)));
    breaker.disable();
    for _ in 0..50 {
        send(&mut service, request()).await.unwrap();
    }
    assert_eq!(breaker.snapshot().calls, 0);
    breaker.metrics_only();
    let mut service = layer.layer(Upstream::always(answer(Class::Transient)));
    for _ in 0..50 {
        send(&mut service, request()).await.unwrap();
    }
    let snapshot = breaker.snapshot();
    assert_eq!(snapshot.state, State::MetricsOnly);
    assert_eq!((snapshot.calls, snapshot.bad_calls), (50, 50));
    breaker.force_close();
    assert_eq!(breaker.snapshot().bad_calls, 0);
}
