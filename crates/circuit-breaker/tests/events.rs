//! Events: alone in its file, since tracing keeps for the whole process what somebody listens to.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::{Arc, Mutex};

use tower::{Layer, Service, ServiceExt, service_fn};
use tower_circuit_breaker::{Breaker, BreakerConfig, CircuitBreakerLayer, Refusal, Refused, State};
use tower_spillway_core::{Carried, Class, Failure, Plain};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// Looks at the breaker, and opens it, from within the event.
struct Meddler {
    breaker: Arc<Mutex<Option<Breaker>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

#[derive(Default)]
struct Fields(Vec<String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let wanted = [
            "spillway.breaker.from",
            "spillway.breaker.to",
            "spillway.open_ms",
        ];
        if wanted.contains(&field.name()) {
            self.0.push(format!("{value:?}").replace('"', ""));
        }
    }
}

impl Subscriber for Meddler {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tower_circuit_breaker")
            && *metadata.level() <= tracing::Level::INFO
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.seen.lock().unwrap().push(fields.0.join(" "));
        let breaker = self.breaker.lock().unwrap().take();
        if let Some(breaker) = breaker {
            assert_eq!(breaker.state(), State::Open);
            breaker.force_open();
            assert_eq!(breaker.snapshot().state, State::ForcedOpen);
        }
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

// Row 34: whoever hears of a change may look at the breaker and change it.
#[tokio::test(start_paused = true)]
async fn row_34_events_come_after_the_lock_and_in_order() {
    let adapter = Plain(|_: Result<&(), Failure<'_>>| Class::Transient);
    let layer = CircuitBreakerLayer::with_config(BreakerConfig::new().jitter(0.0))
        .unwrap()
        .adapter(adapter);
    let breaker = layer.unnamed_breaker();
    let mut service = layer.layer(service_fn(|_: Carried<u8>| {
        std::future::ready(Ok::<_, std::convert::Infallible>(()))
    }));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let meddler = Meddler {
        breaker: Arc::new(Mutex::new(Some(breaker.clone()))),
        seen: Arc::clone(&seen),
    };
    let _guard = tracing::subscriber::set_default(meddler);
    for _ in 0..5 {
        let ready = service.ready().await.unwrap();
        ready.call(Carried::new(1)).await.unwrap();
    }
    let ready = service.ready().await.unwrap();
    let error = ready.call(Carried::new(1)).await.unwrap_err();
    let refused = Refused::find(&*error).unwrap();
    assert_eq!(refused.refusal(), Refusal::ForcedOpen);
    breaker.reset();
    let seen = seen.lock().unwrap();
    assert_eq!(
        *seen,
        ["closed open 5000", "open forced_open", "forced_open closed"]
    );
    assert_eq!(breaker.snapshot().generation, 4);
}
