use tower::Layer;
use tower_circuit_breaker::State;
use tower_spillway_core::{Carried, Class, TargetName, testing::script::Script};

use crate::support::*;

fn key(request: &Request) -> Option<TargetName> {
    let key = *request.get_ref();
    (key > 0).then(|| TargetName::from(format!("key {key}")))
}

/// Fails for odd keys.
fn upstream() -> Upstream {
    Script::from_fn(|_, request: &Request| match request.get_ref() % 2 {
        0 => answer(Class::Success),
        _ => answer(Class::Transient),
    })
}

#[tokio::test(start_paused = true)]
async fn a_state_for_each_key_and_that_of_the_target_without_one() {
    let layer = layer(config()).keyed(key);
    let mut service = layer.layer(upstream());
    for _ in 0..3 {
        for key in [1, 2] {
            send(&mut service, Carried::new(key)).await.unwrap();
        }
    }
    assert_eq!(layer.breaker("key 1").state(), State::Open);
    assert_eq!(layer.breaker("key 2").state(), State::Closed);
    assert!(send(&mut service, Carried::new(1)).await.is_err());
    send(&mut service, Carried::new(2)).await.unwrap();
    send(&mut service, Carried::new(3)).await.unwrap();
    send(&mut service, Carried::new(0)).await.unwrap();
    assert_eq!(layer.unnamed_breaker().snapshot().calls, 1);
}

// Keys come from outside: their number is bounded, and one that is open is not forgotten.
#[tokio::test(start_paused = true)]
async fn any_number_of_keys() {
    let layer = layer(config()).keyed(key);
    let mut service = layer.layer(upstream());
    for _ in 0..3 {
        send(&mut service, Carried::new(1)).await.unwrap();
    }
    for key in (2..20_000).step_by(2) {
        send(&mut service, Carried::new(key)).await.unwrap();
    }
    assert!(send(&mut service, Carried::new(1)).await.is_err());
    let shown = format!("{layer:?}");
    let names = shown.split("names: ").nth(1).unwrap().split(',').next();
    let names: usize = names.unwrap().parse().unwrap();
    assert!((2..=1024).contains(&names), "{names}");
}
