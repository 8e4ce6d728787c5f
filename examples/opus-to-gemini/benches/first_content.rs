//! Time to the first content of a stream: through the healthy stack, and direct, call by call in
//! turn.
//!
//! Run with `cargo bench -p opus-to-gemini --bench first_content`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench may"
)]

mod support;

use std::{process::ExitCode, time::Duration};

use bytes::Bytes;
use clap::Parser;
use tokio::time::Instant;
use tower::ServiceExt;
use tower_spillway_core::BoxError;

use self::support::{
    caller::{self, Direct},
    figures::{self, Times},
    stack,
    upstream::{Pace, Upstream},
};

#[derive(Parser)]
struct Args {
    /// Of each kind, for each size of prompt.
    #[arg(long, default_value_t = 5_000)]
    calls: usize,
    /// What cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What the stack may add to the median.
const BAR_MS: f64 = 1.0;

async fn direct(client: &Direct, url: &str, chat: &Bytes) -> Result<Duration, BoxError> {
    let start = Instant::now();
    let response = client.request(caller::request(url, chat)).await?;
    caller::first_content(start, response).await
}

#[tokio::main]
async fn main() -> Result<ExitCode, BoxError> {
    let Args { calls, .. } = Args::parse();
    let upstream = Upstream::start(Pace {
        tokens: 20,
        gap: Duration::ZERO,
    })?;
    let url = upstream.url();
    let client = caller::client();
    let pipeline = stack::pipeline(&url, 50)?;

    let mut met = true;
    for prompt in [200, 20_000] {
        let chat = caller::chat(prompt, true);
        let (mut bare, mut stacked) = (Vec::new(), Vec::new());
        for n in 0..calls + calls / 10 {
            let one = direct(&client, &url, &chat).await?;
            let start = Instant::now();
            let request = caller::request(&url, &chat);
            let response = pipeline.clone().oneshot(request).await?;
            let other = caller::first_content(start, response).await?;
            // The first tenth warms up.
            if n >= calls / 10 {
                bare.push(one);
                stacked.push(other);
            }
        }
        println!("\na prompt of {prompt} bytes, {calls} streams each");
        let (bare, stacked) = (Times::new(bare), Times::new(stacked));
        bare.print("direct");
        stacked.print("through the stack");
        let (median, _) = figures::added(&bare, &stacked);
        met &= figures::bar("added to the median", median, BAR_MS, "ms");
    }
    Ok(if met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
