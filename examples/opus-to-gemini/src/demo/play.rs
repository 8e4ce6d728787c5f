//! Plays an incident.

use std::{io, ops::RangeInclusive, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tower_spillway_core::{
    Chance,
    clock::{self, millis},
};

use super::{
    Call, Kind, Played, Request, Run, Settings,
    client::Client,
    settings::{Told, at_speed},
    timeline::{self, Notes},
};
use crate::{
    config::Config,
    fake::{Did, Entry, FakeVendor, Fakes},
    pipeline::BuildError,
};

/// An incident that could not be played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// The fake vendors could not listen on loopback.
    #[error("the fake vendors could not be started")]
    Fakes(#[from] io::Error),
    /// The settings make no pipeline.
    #[error("the pipeline could not be built")]
    Build(#[from] BuildError),
}

/// What is heard while it is played: a call has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Tick {
    /// The phase in which it started.
    pub phase: String,
    /// Whether it was answered.
    pub ok: bool,
}

/// Plays an incident against all three clients at once.
///
/// # Errors
///
/// [`DemoError`]; a call without an answer is none, but shows in the figures.
pub async fn play(
    settings: &Settings,
    on_tick: impl Fn(Tick) + Send + Sync + 'static,
) -> Result<Played, DemoError> {
    let on_tick: OnTick = Arc::new(on_tick);
    let run = |kind| run(kind, settings, Arc::clone(&on_tick));
    let (a, b, c) = tokio::join!(run(Kind::TryOther), run(Kind::Breaker), run(Kind::Stack));
    Ok(Played {
        settings: Told::of(settings),
        prices: Config::interactive().prices,
        runs: vec![a?, b?, c?],
    })
}

type OnTick = Arc<dyn Fn(Tick) + Send + Sync>;

async fn run(kind: Kind, settings: &Settings, on_tick: OnTick) -> Result<Run, DemoError> {
    let speed = settings.speed.max(1);
    let chance = Chance::seeded(settings.seed);
    let fakes = Fakes::start(&chance).await?;
    let scaled = |of: &RangeInclusive<Duration>| *of.start() / speed..=*of.end() / speed;
    fakes.anthropic.set_latency(scaled(&settings.opus));
    fakes.gemini.set_latency(scaled(&settings.gemini));
    fakes.anthropic.set_stream(settings.stream / speed);
    fakes.gemini.set_stream(settings.stream / speed);

    let start = clock::now();
    let notes = Notes::new(start, speed);
    // Jitter of the client must not change what the vendors draw.
    let jitter = Chance::seeded(settings.seed.wrapping_add(1));
    let client = Client::new(kind, settings, &fakes, &jitter, &notes)?;
    let calls = calls(&client, settings, start, on_tick);
    let calls = async {
        tokio::join!(
            calls,
            phases(&fakes.anthropic, &fakes.gemini, settings, start)
        )
        .0
    };
    // What the stack does beside calls: it ends with this run.
    let mut beside = JoinSet::new();
    if let Client::Stack(pipeline) = &client {
        for breaker in pipeline.breakers() {
            beside.spawn(timeline::listen(breaker.clone(), notes.clone()));
        }
        for probing in pipeline.probes() {
            beside.spawn(probing);
        }
    }
    let mut calls = calls.await;
    beside.shutdown().await;
    calls.sort_by_key(|call| call.number);
    drop(client);
    let (anthropic, gemini) = (log(&fakes.anthropic, speed), log(&fakes.gemini, speed));
    fakes.stop().await;
    Ok(Run {
        client: kind,
        calls,
        anthropic,
        gemini,
        changes: notes.take(),
    })
}

/// What the vendors do, phase by phase.
async fn phases(anthropic: &FakeVendor, gemini: &FakeVendor, settings: &Settings, start: Instant) {
    let speed = settings.speed.max(1);
    let mut end = start;
    for phase in &settings.phases {
        anthropic.set(at_speed(phase.behaviour, speed));
        gemini.set(at_speed(phase.gemini, speed));
        end += phase.lasts / speed;
        sleep_until(end).await;
    }
}

/// Calls at a steady pace, whatever became of those before.
async fn calls(client: &Client, settings: &Settings, start: Instant, on_tick: OnTick) -> Vec<Call> {
    let speed = settings.speed.max(1);
    let body = Arc::new(body());
    let mut calls = JoinSet::new();
    let mut at = Duration::ZERO;
    for number in 1..=settings.calls() {
        sleep_until(start + at / speed).await;
        let phase = settings.phases.get(settings.phase_at(at));
        let call = Call {
            number,
            phase: phase.map(|p| p.name.to_string()).unwrap_or_default(),
            start: millis(at),
            latency: 0,
            first_content: None,
            ok: false,
            target: None,
            model: None,
            fallback_reason: None,
            attempts: Vec::new(),
        };
        let (client, body, on_tick) = (client.clone(), Arc::clone(&body), Arc::clone(&on_tick));
        calls.spawn(async move {
            let call = client.ask(&body, call).await;
            on_tick(Tick {
                phase: call.phase.clone(),
                ok: call.ok,
            });
            unscaled(call, speed)
        });
        at += settings.every;
    }
    let mut all = Vec::new();
    // A call that panicked has no report, and is missed in the sum.
    while let Some(ended) = calls.join_next().await {
        all.extend(ended);
    }
    all
}

/// A prompt of some length, so that tokens cost something.
fn body() -> Value {
    let prompt = "Summarise what is known about spillways of dams. ".repeat(24);
    json!({
        "messages": [{"role": "user", "content": prompt}],
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_tokens": 1_000,
    })
}

/// From times as played to those of the incident.
fn unscaled(mut call: Call, speed: u32) -> Call {
    let speed = u64::from(speed);
    call.latency *= speed;
    call.first_content = call.first_content.map(|t| t * speed);
    for attempt in &mut call.attempts {
        attempt.start *= speed;
        attempt.elapsed *= speed;
    }
    call
}

fn log(vendor: &FakeVendor, speed: u32) -> Vec<Request> {
    let entry = |entry: Entry| Request {
        at: millis(entry.at.saturating_mul(speed)),
        took: entry.took.map(|took| millis(took.saturating_mul(speed))),
        id: entry.id,
        model: entry.model,
        did: match entry.did {
            Did::Answered(status) => status.to_string(),
            Did::Cut => "cut".into(),
            Did::Reset => "reset".into(),
            Did::Stalled => "stalled".into(),
            // One that hangs still: nobody waits for it any more.
            Did::Waiting | Did::Left => "left".into(),
        },
        input_tokens: entry.input_tokens,
        output_tokens: entry.output_tokens,
    };
    vendor.log().into_iter().map(entry).collect()
}
