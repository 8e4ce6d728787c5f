//! Very many calls through the gateway while both vendors misbehave at random.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http_body_util::BodyExt;
use opus_to_gemini::fake::{Behaviour, Fakes};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tower_spillway_core::{BoxError, Chance};

use super::{
    caller::{self, Direct},
    gateway::Gateway,
    verdict::{Counts, Got, judge},
};

/// How much.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub calls: usize,
    pub in_flight: usize,
    /// Of a hundred requests, those with which a vendor misbehaves.
    pub faults: u8,
    pub seed: u64,
}

/// What came of it.
#[derive(Debug)]
pub struct Soaked {
    pub counts: Counts,
    pub took: Duration,
    /// Resident memory of the gateway in KiB, after each twentieth of the calls.
    pub resident: Vec<u64>,
    /// Open descriptors of the gateway: before the first call, the most seen, and at the end.
    pub descriptors: [usize; 3],
}

/// Of each answer.
const WORDS: usize = 40;
/// In which memory is looked at.
const PARTS: usize = 20;
/// No call takes so long, or it is lost.
const LIMIT: Duration = Duration::from_secs(30);
/// How soon a caller comes back who was told that every target is out: sooner than it was told to.
const BACK: Duration = Duration::from_millis(250);
/// Of a hundred callers, those who leave after the first piece of a stream.
const LEAVERS: u64 = 2;

/// Everything that a fake vendor can do wrong.
const FAULTS: [Behaviour; 17] = [
    Behaviour::Throttle {
        retry_after: Duration::from_millis(20),
    },
    Behaviour::Fail { status: 500 },
    Behaviour::Fail { status: 503 },
    Behaviour::Fail { status: 504 },
    Behaviour::Fail { status: 529 },
    Behaviour::Hang,
    Behaviour::Reset,
    Behaviour::Stall,
    Behaviour::Cut,
    Behaviour::StallAfter { words: 10 },
    Behaviour::CutAfter { words: 0 },
    Behaviour::CutAfter { words: 25 },
    Behaviour::RefuseInStream { status: 529 },
    Behaviour::Silent,
    Behaviour::Garble { words: 20 },
    Behaviour::NoDone,
    Behaviour::ErrorAs200,
];

/// Short waits and limits, so that a fault costs a part of a second; and breakers that open now and
/// then, not all the time: faults by chance come three in a row soon among so many calls. Else the
/// shipped settings.
fn settings(fakes: &Fakes, in_flight: usize) -> String {
    format!(
        r#"
        [gateway]
        in_flight = {in_flight}
        [call]
        plain_deadline = "10s"
        streaming_deadline = "10s"
        [failover]
        patience = "50ms"
        [retry_after]
        max_hold = "50ms"
        [backoff]
        base = "5ms"
        cap = "50ms"
        [breaker]
        failures = 4
        bad = 8
        open = "100ms"
        max_open = "500ms"
        ramp = "100ms"
        probe_every = "50ms"
        abandoned_after = "500ms"
        [stream]
        idle = "1s"
        [pool]
        connections = {in_flight}
        idle_timeout = "500ms"
        [targets.opus]
        url = "{}"
        plain_within = "1s"
        streaming_within = "1s"
        in_flight = {in_flight}
        [targets.gemini]
        url = "{}"
        plain_within = "1s"
        streaming_within = "1s"
        in_flight = {in_flight}
        "#,
        fakes.anthropic.url(),
        fakes.gemini.url(),
    )
}

/// Makes all calls, and sees what is left of them.
pub async fn soak(plan: Plan) -> Result<Soaked, BoxError> {
    let chance = Chance::seeded(plan.seed);
    let fakes = Fakes::start(&chance).await?;
    for fake in [&fakes.anthropic, &fakes.gemini] {
        fake.set_words(WORDS);
        fake.set_latency(Duration::ZERO..=Duration::from_millis(5));
        fake.set_faults(plan.faults, FAULTS);
    }
    let gateway = Gateway::start(&settings(&fakes, plan.in_flight))?;
    let server = gateway.server();
    let at_start = server.descriptors()?;

    let callers = Arc::new(Callers {
        client: caller::client(),
        url: server.url().to_owned(),
        chance,
        plain: caller::chat(500, false),
        stream: caller::chat(500, true),
        next: AtomicUsize::new(0),
        calls: plan.calls,
    });
    let (sender, mut results) = tokio::sync::mpsc::unbounded_channel();
    let start = Instant::now();
    let mut all = JoinSet::new();
    for _ in 0..plan.in_flight {
        let (callers, sender) = (Arc::clone(&callers), sender.clone());
        all.spawn(async move {
            while let Some(got) = callers.one().await {
                let refused = matches!(&got, Got::Error(503, _));
                sender.send(got).ok();
                if refused {
                    sleep(BACK).await;
                }
            }
        });
    }
    drop((sender, callers));

    let (mut counts, mut resident) = (Counts::new(), Vec::new());
    let mut most = at_start;
    let part = (plan.calls / PARTS).max(1);
    let mut done = 0;
    while let Some(got) = results.recv().await {
        *counts.entry(got).or_default() += 1;
        done += 1;
        if done % part == 0 {
            resident.push(server.resident()?);
            most = most.max(server.descriptors()?);
        }
    }
    let took = start.elapsed();
    all.join_all().await;
    assert_eq!(done, plan.calls, "every call has an outcome");
    let at_end = settled(|| server.descriptors(), at_start).await?;
    fakes.stop().await;
    Ok(Soaked {
        counts,
        took,
        resident,
        descriptors: [at_start, most, at_end],
    })
}

/// The count once it is down to what it was, or what it is after ten seconds.
async fn settled(count: impl Fn() -> io::Result<usize>, was: usize) -> io::Result<usize> {
    let start = Instant::now();
    loop {
        let is = count()?;
        if is <= was || start.elapsed() > Duration::from_secs(10) {
            return Ok(is);
        }
        sleep(Duration::from_millis(20)).await;
    }
}

struct Callers {
    client: Direct,
    url: String,
    chance: Chance,
    plain: Bytes,
    stream: Bytes,
    next: AtomicUsize,
    calls: usize,
}

impl Callers {
    /// The next call, if there is one left.
    async fn one(&self) -> Option<Got> {
        if self.next.fetch_add(1, Ordering::Relaxed) >= self.calls {
            return None;
        }
        let stream = self.chance.up_to(1) == 0;
        let leaves = stream && self.chance.up_to(99) < LEAVERS;
        let got = timeout(LIMIT, self.call(stream, leaves)).await;
        Some(match got {
            Ok(Ok(got)) => got,
            Ok(Err(error)) => Got::Lost(format!("a broken connection: {error:?}")),
            Err(_) => Got::Lost("no end in time".to_owned()),
        })
    }

    async fn call(&self, stream: bool, leaves: bool) -> Result<Got, BoxError> {
        let chat = if stream { &self.stream } else { &self.plain };
        let response = self
            .client
            .request(caller::request(&self.url, chat))
            .await?;
        let status = response.status().as_u16();
        let mut body = response.into_body();
        if leaves && status == 200 {
            body.frame().await.transpose()?;
            return Ok(Got::Left);
        }
        let body = body.collect().await?.to_bytes();
        Ok(judge(status, stream, &body, WORDS))
    }
}
