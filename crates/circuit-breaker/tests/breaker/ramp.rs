use tokio::time::advance;
use tower_circuit_breaker::{Refusal, Refused, State};
use tower_spillway_core::{Chance, Class};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn after_closing_a_share_is_refused_until_all_are_admitted() {
    let config = config().ramp(30 * SECOND).chance(Chance::seeded(1));
    let layer = layer(config);
    let breaker = layer.unnamed_breaker();
    let (mut service, upstream) = opened(&layer, [answer(Class::Success)]).await;
    advance(5 * SECOND).await;
    for _ in 0..2 {
        send(&mut service, request()).await.unwrap();
    }
    assert_eq!(breaker.state(), State::Closed);
    assert_eq!(breaker.snapshot().ramping_for, Some(30 * SECOND));
    let mut admitted = Vec::new();
    for _ in 0..31 {
        let before = upstream.calls();
        for _ in 0..100 {
            if let Err(error) = send(&mut service, request()).await {
                let refused = Refused::find(&*error).unwrap();
                assert_eq!(refused.refusal(), Refusal::Ramping);
                assert_eq!(refused.wait(), breaker.snapshot().ramping_for);
            }
        }
        admitted.push(upstream.calls() - before);
        advance(SECOND).await;
    }
    let of = |seconds: std::ops::Range<usize>| {
        let part = &admitted[seconds.clone()];
        part.iter().sum::<usize>() / seconds.len()
    };
    assert!((5..=30).contains(&of(0..5)), "{admitted:?}");
    assert!((45..=65).contains(&of(12..18)), "{admitted:?}");
    assert!((85..=100).contains(&of(25..30)), "{admitted:?}");
    assert_eq!(admitted[30], 100);
}

#[tokio::test(start_paused = true)]
async fn off_unless_it_is_asked_for() {
    let layer = layer(config().chance(Chance::fixed(u64::MAX)));
    let (mut service, _) = opened(&layer, [answer(Class::Success)]).await;
    advance(5 * SECOND).await;
    for _ in 0..50 {
        send(&mut service, request()).await.unwrap();
    }
}
