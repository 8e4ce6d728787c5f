//! What the gateway adds to a call, at a steady rate that waits for nobody: calls to an upstream
//! through it, and between them as many direct ones, and as many through a proxy that only passes
//! on what comes: what one more server on the way costs in any case.
//!
//! Run with `cargo bench -p opus-to-gemini --bench added_latency`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench may"
)]

mod support;

use std::{process::ExitCode, sync::Arc, time::Duration};

use bytes::Bytes;
use clap::Parser;
use http_body_util::BodyExt;
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior, interval},
};
use tower_spillway_core::BoxError;

use self::support::{
    caller::{self, Direct},
    figures::{self, Times},
    gateway::{self, Gateway},
    proxy,
    upstream::{Pace, Upstream},
};

#[derive(Parser)]
struct Args {
    /// A second, of each kind.
    #[arg(long, default_value_t = 200)]
    rate: u32,
    /// Of each kind.
    #[arg(long, default_value_t = 6_000)]
    calls: usize,
    #[command(flatten)]
    proxy: proxy::Args,
    /// What cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What the gateway may add to the median, and to the 99th percentile.
const BARS_MS: [f64; 2] = [0.3, 1.0];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// To the last byte of a plain answer.
    Plain,
    /// To the first content of a stream.
    Stream,
}

/// One way to the upstream.
struct Way {
    client: Direct,
    url: String,
}

impl Way {
    fn to(url: &str) -> Arc<Self> {
        Arc::new(Self {
            client: caller::client(),
            url: url.to_owned(),
        })
    }

    async fn call(&self, kind: Kind, chat: &Bytes) -> Result<Duration, BoxError> {
        let start = Instant::now();
        let response = self
            .client
            .request(caller::request(&self.url, chat))
            .await?;
        if kind == Kind::Stream {
            return caller::first_content(start, response).await;
        }
        assert_eq!(response.status(), 200);
        response.into_body().collect().await?;
        Ok(start.elapsed())
    }
}

/// Calls on each way in turn, at `rate` a second on each, whatever becomes of those before.
async fn drive(args: &Args, ways: &[Arc<Way>; 3], kind: Kind) -> Result<[Times; 3], BoxError> {
    let chat = caller::chat(2_000, kind == Kind::Stream);
    let mut calls = JoinSet::new();
    let mut ticks = interval(Duration::from_secs(1) / (3 * args.rate));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let warm_up = args.calls / 10;
    for n in 0..args.calls + warm_up {
        for (which, way) in ways.iter().enumerate() {
            ticks.tick().await;
            let (way, chat) = (Arc::clone(way), chat.clone());
            calls.spawn(async move { (n, which, way.call(kind, &chat).await) });
        }
    }
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    while let Some(done) = calls.join_next().await {
        let (n, which, took) = done?;
        let took = took?;
        if n >= warm_up {
            times[which].push(took);
        }
    }
    Ok(times.map(Times::new))
}

#[tokio::main]
async fn main() -> Result<ExitCode, BoxError> {
    let args = Args::parse();
    if args.proxy.is_asked_for() {
        args.proxy.serve().await?;
        return Ok(ExitCode::SUCCESS);
    }
    let upstream = Upstream::start(Pace {
        tokens: 50,
        gap: Duration::ZERO,
    })?;
    let url = upstream.url();
    let gateway = Gateway::start(&gateway::settings([&url, &url], 256))?;
    let plain = proxy::start("pass-through", &url)?;
    let ways = [&url, plain.url(), gateway.server().url()].map(Way::to);

    let mut met = true;
    for (name, kind) in [
        ("plain answers, to the last byte", Kind::Plain),
        ("streams, to the first content", Kind::Stream),
    ] {
        let [direct, passed, through] = drive(&args, &ways, kind).await?;
        let (rate, calls) = (args.rate, args.calls);
        println!("\n{name}: {calls} calls each way at {rate}/s each");
        direct.print("direct");
        passed.print("through a plain proxy");
        through.print("through the gateway");
        let (median, p99) = figures::added(&direct, &through);
        met &= figures::bar("added to the median", median, BARS_MS[0], "ms");
        met &= figures::bar("added to the p99", p99, BARS_MS[1], "ms");
    }
    Ok(if met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
