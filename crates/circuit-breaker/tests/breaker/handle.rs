use std::sync::{Arc, Mutex};

use tokio::time::advance;
use tower::{Layer, Service, ServiceExt};
use tower_circuit_breaker::{Breaker, Refusal, State};
use tower_spillway_core::{Class, testing::script::Step};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::support::*;

// Row 33: opened by hand, then the open time of an earlier trip passes.
#[tokio::test(start_paused = true)]
async fn row_33_forced_open_stays_until_somebody_says_otherwise() {
    let layer = layer(config());
    let breaker = layer.unnamed_breaker();
    let (mut service, _) = opened(&layer, [answer(Class::Success)]).await;
    breaker.force_open();
    advance(SECOND * 86_400).await;
    let refusal = refused(&mut service).await;
    assert_eq!(refusal.refusal(), Refusal::ForcedOpen);
    assert_eq!((refusal.wait(), refusal.detail()), (None, None));
    assert_eq!(breaker.state(), State::ForcedOpen);
    breaker.force_close();
    send(&mut service, request()).await.unwrap();
    assert_eq!(breaker.state(), State::Closed);
}

#[tokio::test(start_paused = true)]
async fn forced_open_during_a_probe_is_not_undone_by_it() {
    let layer = layer(config().close_after(1));
    let breaker = layer.unnamed_breaker();
    let (mut service, _) = opened(&layer, [answer(Class::Success)]).await;
    advance(5 * SECOND).await;
    let probe = service.ready().await.unwrap().call(request());
    breaker.force_open();
    probe.await.unwrap();
    assert_eq!(breaker.state(), State::ForcedOpen);
}

#[tokio::test(start_paused = true)]
async fn force_close_starts_open_times_again_and_reset_forgets_all() {
    let layer = layer(config());
    let breaker = layer.unnamed_breaker();
    let (mut service, _) = opened(&layer, [answer(Class::Transient)]).await;
    advance(5 * SECOND).await;
    send(&mut service, request()).await.unwrap();
    assert_eq!(breaker.snapshot().reopenings, 1);
    breaker.force_close();
    assert_eq!(breaker.snapshot().reopenings, 0);
    for _ in 0..3 {
        send(&mut service, request()).await.unwrap();
    }
    assert_eq!(refused(&mut service).await.wait(), Some(5 * SECOND));
    assert_eq!(breaker.snapshot().trips, 3);
    breaker.reset();
    let snapshot = breaker.snapshot();
    assert_eq!((snapshot.state, snapshot.trips), (State::Closed, 0));
    send(&mut service, request()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn looking_changes_nothing() {
    let layer = layer(config());
    let breaker = layer.unnamed_breaker();
    let (_service, _) = opened(&layer, [Step::hang()]).await;
    advance(5 * SECOND).await;
    let generation = breaker.snapshot().generation;
    for _ in 0..10 {
        assert_eq!(breaker.state(), State::HalfOpen);
        assert_eq!(breaker.snapshot().generation, generation);
        assert_eq!(breaker.snapshot().retry_in, None);
    }
}

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
    let layer = layer(config());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let meddler = Meddler {
        breaker: Arc::new(Mutex::new(Some(layer.unnamed_breaker()))),
        seen: Arc::clone(&seen),
    };
    let _guard = tracing::subscriber::set_default(meddler);
    let (mut service, _) = opened(&layer, [answer(Class::Success)]).await;
    assert_eq!(refused(&mut service).await.refusal(), Refusal::ForcedOpen);
    layer.unnamed_breaker().reset();
    // The one in between came from within an event, where tracing itself is silent.
    let seen = seen.lock().unwrap();
    assert_eq!(*seen, ["closed open 5000", "forced_open closed"]);
    assert_eq!(layer.unnamed_breaker().snapshot().generation, 4);
}

// Row 37: nothing runs beside the calls: no runtime is needed, and nothing outlives the service.
#[test]
fn row_37_no_background_task() {
    let layer = layer(config());
    let mut service = layer.layer(Upstream::always(answer(Class::Transient)));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    for n in 0..5 {
        assert!(service.poll_ready(&mut cx).is_ready());
        let mut call = std::pin::pin!(service.call(request()));
        match call.as_mut().poll(&mut cx) {
            std::task::Poll::Ready(out) => assert_eq!(out.is_ok(), n < 3),
            std::task::Poll::Pending => panic!("nobody would wake it"),
        }
    }
    assert_eq!(layer.unnamed_breaker().state(), State::Open);
}

#[tokio::test(start_paused = true)]
async fn row_37_no_task_in_a_runtime() {
    let alive = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = alive();
    let layer = layer(config());
    let (mut service, _) = opened(&layer, [answer(Class::Success)]).await;
    refused(&mut service).await;
    advance(5 * SECOND).await;
    send(&mut service, request()).await.unwrap();
    assert_eq!(alive(), before);
}
