//! Puts policies of one's own in the place of the configured ones, one at a time, and shows what
//! each changes.
//!
//! ```console
//! $ cargo run -p opus-to-gemini --example swap
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "an example that asserts"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use opus_to_gemini::{
    chat::{Asked, Chat, ask},
    fake::{Behaviour, FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, Fakes},
    pipeline::{Builder, ChatResponse, Pipeline, Upstream},
};
use tower_circuit_breaker::{Breaker, BreakerConfig, Rule, State};
use tower_spillway_core::{
    BoxError, Cause, Chance, Class, Failure, Gate, History, Outcome, Policy, Reading, Verdict,
    gate::{Ask, Receipt},
};

/// Waits one millisecond more each time, and never gives up by itself.
struct Steps;

impl Policy<ChatResponse> for Steps {
    fn judge(&self, past: &History, outcome: &Outcome<'_, ChatResponse>) -> Verdict {
        if outcome.class().may_pass() {
            let after = Duration::from_millis(past.sends.into());
            return Verdict::Retry { after };
        }
        Verdict::Pass
    }
}

/// Opens at the first failure.
struct Jumpy;

impl Jumpy {
    fn breaker(target: &str) -> Breaker {
        let rules = [Rule::number_of_last(1, 5)];
        Breaker::new(target, BreakerConfig::new().rules(rules)).unwrap()
    }
}

/// Grants nothing, and counts who asked.
#[derive(Default)]
struct Stingy {
    asked: AtomicU32,
}

impl Gate for Stingy {
    fn withdraw(&self, _: &Ask) -> Option<Receipt> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        None
    }
}

/// An overloaded vendor gets no second try: whoever asks goes on at once.
struct LeaveAtOnce;

impl LeaveAtOnce {
    fn read(out: Result<&ChatResponse, Failure<'_>>) -> Option<Reading> {
        let response = out.ok()?;
        let overloaded = response.status().as_u16() == 529;
        overloaded.then(|| Reading::new(Class::NotHere).with_reason("overloaded"))
    }
}

/// Two vendors, of which Opus fails in the same way all the time, and the stack in front of them.
async fn opus_fails(status: u16, change: impl FnOnce(Builder) -> Builder) -> (Asked, Pipeline) {
    let chance = Chance::seeded(1);
    let fakes = Fakes::start(&chance).await.unwrap();
    fakes.anthropic.set(Behaviour::Fail { status });
    let builder = Pipeline::builder()
        .target(Upstream::opus(FAKE_ANTHROPIC_KEY).url(fakes.anthropic.url()))
        .target(Upstream::gemini(FAKE_GEMINI_KEY).url(fakes.gemini.url()))
        .chance(chance);
    let pipeline = change(builder).build().unwrap();
    let asked = ask(&pipeline, &Chat::new("Hello")).await;
    fakes.stop().await;
    (asked, pipeline)
}

fn first_cause(asked: &Asked) -> Option<Cause> {
    asked.report.fallback_reason.as_ref()?.cause
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    // As configured: a second try at Opus after a jittered wait, then Gemini.
    let (asked, pipeline) = opus_fails(500, |builder| builder).await;
    assert_eq!(asked.report.sends(), 3);
    assert_eq!(first_cause(&asked), Some(Cause::OtherTargetFirst));
    assert_eq!(pipeline.breakers()[0].state(), State::Closed);
    println!("as configured   {} sends in all", asked.report.sends());

    let (asked, _) = opus_fails(500, |builder| builder.backoff(Steps)).await;
    let wait = asked.report.attempts[0].wait;
    assert_eq!(wait, Some(Duration::from_millis(1)));
    println!("own backoff     the first wait is {:?}", wait.unwrap());

    let (asked, pipeline) = opus_fails(500, |builder| builder.breaker(Jumpy::breaker)).await;
    assert!(asked.answer.is_ok());
    assert_eq!(pipeline.breakers()[0].state(), State::Open);
    println!("own breaker     open after one failure");

    let stingy = Arc::new(Stingy::default());
    let gate: Arc<dyn Gate> = stingy.clone();
    let (asked, _) = opus_fails(500, |builder| builder.budget(gate)).await;
    assert_eq!(asked.report.sends(), 2);
    assert!(matches!(
        first_cause(&asked),
        Some(Cause::BudgetDenied { .. })
    ));
    assert_eq!(stingy.asked.load(Ordering::Relaxed), 1);
    println!("own budget      no retry at Opus, Gemini at once");

    let (asked, _) = opus_fails(529, |builder| builder).await;
    assert_eq!(asked.report.sends(), 3);
    let (asked, _) = opus_fails(529, |builder| builder.hop_rule(LeaveAtOnce::read)).await;
    assert_eq!(asked.report.sends(), 2);
    assert_eq!(first_cause(&asked), Some(Cause::NotHere));
    println!("own hop rule    529 at Opus goes to Gemini at once");
    Ok(())
}
