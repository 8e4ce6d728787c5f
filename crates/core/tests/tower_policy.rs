//! Policies, limits and gates of these crates under `tower`'s own retry.
#![cfg(feature = "tower")]
#![allow(clippy::unwrap_used, reason = "a test may")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::time::Instant;
use tower::{Layer, ServiceExt, retry::RetryLayer};
use tower_spillway_core::{
    BoxError, Class, Detached, Engine, Failure, Gate, History, Limits, Outcome, Policy, Verdict,
    gate::{Ask, Receipt, Settled},
    retry::TowerPolicy,
    testing::script::{Script, Step},
};

const SECOND: Duration = Duration::from_secs(1);

fn classify(out: Result<&u16, Failure<'_>>) -> Class {
    match out {
        Ok(200) => Class::Success,
        Ok(429) => Class::Throttled,
        Ok(400) => Class::CallerFault,
        _ => Class::Transient,
    }
}

/// A second for each outcome of the class in a row.
#[derive(Clone, Copy)]
struct ByStreak;

impl<Res> Policy<Res> for ByStreak {
    fn judge(&self, past: &History, _: &Outcome<'_, Res>) -> Verdict {
        Verdict::Retry {
            after: SECOND * past.streak,
        }
    }
}

type Adapter = Detached<fn(Result<&u16, Failure<'_>>) -> Class>;

fn engine(sends: u32) -> Engine<ByStreak, Adapter> {
    let adapter: Adapter = Detached(classify);
    Engine::new(ByStreak, adapter).limits(Limits {
        max_attempts: Some(sends),
        ..Limits::default()
    })
}

fn statuses<const N: usize>(statuses: [u16; N]) -> Script<u8, u16> {
    Script::new(statuses.map(Step::answer))
}

async fn call(engine: Engine<ByStreak, Adapter>, upstream: &Script<u8, u16>) -> u16 {
    let layer = RetryLayer::new(TowerPolicy::new(engine));
    layer.layer(upstream.clone()).oneshot(1).await.unwrap()
}

/// Writes down what it is told.
#[derive(Default)]
struct Diary {
    lines: Mutex<Vec<String>>,
    grants: usize,
}

impl Diary {
    fn granting(grants: usize) -> Arc<Self> {
        Arc::new(Self {
            grants,
            ..Self::default()
        })
    }

    fn write(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }

    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().unwrap())
    }
}

impl Gate for Diary {
    fn enter(&self, _: Instant) {
        self.write("entered".into());
    }

    fn leave(&self, _: Instant) {
        self.write("left".into());
    }

    fn first_end(&self, class: Class, _: Instant) {
        self.write(format!("first {class}"));
    }

    fn attempt_end(&self, class: Class, _: Instant) {
        self.write(format!("end {class}"));
    }

    fn withdraw(&self, ask: &Ask) -> Option<Receipt> {
        let lines = self.lines.lock().unwrap();
        let asked = lines.iter().filter(|l| l.starts_with("asked")).count();
        drop(lines);
        self.write(format!("asked {}", ask.class));
        (asked < self.grants).then(Receipt::default)
    }

    fn settle(&self, _: Receipt, settled: Settled) {
        self.write(format!("{settled:?}"));
    }
}

#[tokio::test(start_paused = true)]
async fn it_waits_as_the_policy_says_and_counts_sends() {
    let upstream = statuses([503, 429, 503, 200]);
    assert_eq!(call(engine(9), &upstream).await, 200);
    assert_eq!(upstream.times(), [0, 1, 2, 4].map(|s| s * SECOND));
    let upstream = statuses([503]);
    assert_eq!(call(engine(3), &upstream).await, 503);
    assert_eq!(upstream.calls(), 3);
    let upstream = statuses([400]);
    assert_eq!(call(engine(3), &upstream).await, 400);
    assert_eq!(upstream.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_service_do_not_share_their_state() {
    let upstream = statuses([503]);
    let service = RetryLayer::new(TowerPolicy::new(engine(3))).layer(upstream.clone());
    for sends in [3, 6, 9] {
        service.clone().oneshot(1).await.unwrap();
        assert_eq!(upstream.calls(), sends);
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_comes_back_as_it_was() {
    let upstream: Script<u8, u16> = Script::always(Step::fail(|| std::io::Error::other("reset")));
    let layer = RetryLayer::new(TowerPolicy::new(engine(2)));
    let error: BoxError = layer.layer(upstream.clone()).oneshot(1).await.unwrap_err();
    assert_eq!(
        error.downcast::<std::io::Error>().unwrap().to_string(),
        "reset"
    );
    assert_eq!(upstream.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn gates_hear_of_a_call_what_they_hear_of_a_drive() {
    for statuses_of_call in [&[503, 429, 200][..], &[200], &[400], &[503, 503, 503]] {
        let script = || Script::new(statuses_of_call.iter().map(|s| Step::answer(*s)));
        let (ours, towers) = (Diary::granting(1), Diary::granting(1));
        let drive = tower_spillway_core::RetryLayer::from_engine(engine(5).gate(ours.clone()));
        let a = drive.layer(script()).oneshot(1u8).await.unwrap();
        let b = call(engine(5).gate(towers.clone()), &script()).await;
        assert_eq!(a, b);
        assert_eq!(ours.lines(), towers.lines(), "{statuses_of_call:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_asleep_it_gives_back_and_dropped_under_way_it_was_sent() {
    let slow = || Script::always(Step::answer(503).after(SECOND));
    for (after, last) in [
        (SECOND * 3 / 2, vec!["NotSent", "left"]),
        (
            SECOND * 5 / 2,
            vec!["Sent(Cancelled)", "end cancelled", "left"],
        ),
    ] {
        let diary = Diary::granting(9);
        let upstream = slow();
        let calling = call(engine(5).gate(diary.clone()), &upstream);
        tokio::time::timeout(after, calling).await.unwrap_err();
        let lines = diary.lines();
        assert!(
            lines.ends_with(&last.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>()),
            "{lines:?}"
        );
    }
}
