//! The outage drill, at the figures of the profile `interactive`, on a clock that is paused: 25
//! calls, one every 4 s, the primary down for the first 60 s.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use opus_to_gemini::{
    config::Config,
    pipeline::{ChatRequest, Pipeline, Upstream},
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};
use tower::{ServiceExt, service_fn};
use tower_circuit_breaker::State;
use tower_spillway_core::{BoxError, Chance, Ledger};

const SECOND: Duration = Duration::from_secs(1);
const EVERY: Duration = Duration::from_secs(4);
const CALLS: u32 = 25;
const OUTAGE: Duration = Duration::from_secs(60);
/// Of a healthy vendor.
const LATENCY: Duration = Duration::from_millis(700);
/// Of the jitter in waits and open times.
const SEEDS: u64 = 20;
const PROMPT: &str = "What is a spillway?";

/// How the primary is down.
#[derive(Clone, Copy, Debug)]
enum Down {
    /// Nothing listens.
    Refuses,
    /// It answers 503.
    Fails,
    /// It takes requests and answers none.
    Hangs,
}

/// What reached the primary while it was down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reached {
    prompts: u32,
    probes: u32,
}

struct World {
    start: Instant,
    down: Down,
    reached: Mutex<Reached>,
}

type Answer = Response<Full<Bytes>>;

impl World {
    async fn opus(&self, body: &str) -> Result<Answer, BoxError> {
        if self.start.elapsed() >= OUTAGE {
            return answer(body).await;
        }
        {
            let mut reached = self.reached.lock().unwrap();
            match body.contains(PROMPT) {
                true => reached.prompts += 1,
                false => reached.probes += 1,
            }
        }
        match self.down {
            Down::Refuses => Err(io::Error::from(io::ErrorKind::ConnectionRefused).into()),
            Down::Fails => Ok(Response::builder().status(503).body(Full::default())?),
            Down::Hangs => std::future::pending().await,
        }
    }
}

async fn answer(body: &str) -> Result<Answer, BoxError> {
    sleep(LATENCY).await;
    let (kind, text) = match body.contains("\"stream\":true") {
        true => (
            "text/event-stream",
            "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n",
        ),
        false => (
            "application/json",
            r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#,
        ),
    };
    Ok(Response::builder()
        .header("content-type", kind)
        .body(Full::from(text))?)
}

fn stack(world: &Arc<World>, seed: u64) -> Pipeline {
    let mut config = Config::interactive();
    config.breaker.ramp = Duration::ZERO;
    let world = Arc::clone(world);
    Pipeline::builder()
        .config(config)
        .chance(Chance::seeded(seed))
        .target(Upstream::opus("k"))
        .target(Upstream::gemini("k"))
        .client(service_fn(move |request: ChatRequest| {
            let world = Arc::clone(&world);
            async move {
                let is_opus = request.uri().host() == Some("api.anthropic.com");
                let body = request.into_body().collect().await?.to_bytes();
                let body = std::str::from_utf8(&body)?;
                match is_opus {
                    true => world.opus(body).await,
                    false => answer(body).await,
                }
            }
        }))
        .build()
        .unwrap()
}

/// Who served a call, if it was answered.
async fn call(pipeline: Pipeline, stream: bool) -> Option<String> {
    let body =
        format!(r#"{{"messages":[{{"role":"user","content":"{PROMPT}"}}],"stream":{stream}}}"#);
    let mut request = Request::new(Full::from(body));
    let ledger = Ledger::new();
    request.extensions_mut().insert(ledger.clone());
    let response = pipeline.oneshot(request).await.ok()?;
    let success = response.status().is_success();
    let body = response.into_body().collect().await.ok()?.to_bytes();
    let whole = success && !body.windows(7).any(|w| w == b"\"error\"");
    whole.then(|| ledger.report().target.unwrap().to_string())
}

struct Played {
    served: Vec<Option<String>>,
    reached: Reached,
    /// From the recovery to a closed breaker.
    closed_after: Duration,
}

async fn play(down: Down, stream: bool, seed: u64) -> Played {
    let world = Arc::new(World {
        start: Instant::now(),
        down,
        reached: Mutex::default(),
    });
    let pipeline = stack(&world, seed);
    let probing: Vec<_> = pipeline.probes().map(tokio::spawn).collect();
    let breaker = pipeline.breakers()[0].clone();
    let recovery = world.start + OUTAGE;
    let closed = tokio::spawn(async move {
        sleep_until(recovery).await;
        while breaker.state() != State::Closed {
            sleep(SECOND / 100).await;
        }
        recovery.elapsed()
    });
    let mut calls = JoinSet::new();
    for number in 0..CALLS {
        sleep_until(world.start + EVERY * number).await;
        let pipeline = pipeline.clone();
        calls.spawn(async move { (number, call(pipeline, stream).await) });
    }
    let mut served = calls.join_all().await;
    served.sort_by_key(|(number, _)| *number);
    let closed_after = closed.await.unwrap();
    probing.iter().for_each(tokio::task::JoinHandle::abort);
    Played {
        served: served.into_iter().map(|(_, by)| by).collect(),
        reached: *world.reached.lock().unwrap(),
        closed_after,
    }
}

fn check(played: &Played, down: Down) {
    let Played {
        served,
        reached,
        closed_after,
    } = played;
    assert_eq!(served.len(), 25);
    assert!(served.iter().all(Option::is_some), "{down:?}: {served:?}");
    assert!(reached.prompts <= 4, "{down:?}: {reached:?}");
    assert!(reached.probes <= 8, "{down:?}: {reached:?}");
    assert!(*closed_after <= 15 * SECOND, "{down:?}: {closed_after:?}");
    // The first call after the breaker closed.
    let closed = (OUTAGE + *closed_after).as_secs_f64();
    let next = (0..CALLS)
        .find(|n| (EVERY * *n).as_secs_f64() > closed)
        .unwrap();
    for by in &served[usize::try_from(next).unwrap()..] {
        assert_eq!(by.as_deref(), Some("opus"), "{down:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn streams_live_through_an_outage_of_a_minute() {
    for down in [Down::Refuses, Down::Fails, Down::Hangs] {
        for seed in 0..SEEDS {
            check(&play(down, true, seed).await, down);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn plain_calls_live_through_an_outage_of_a_minute() {
    for down in [Down::Refuses, Down::Fails] {
        for seed in 0..SEEDS {
            check(&play(down, false, seed).await, down);
        }
    }
}
