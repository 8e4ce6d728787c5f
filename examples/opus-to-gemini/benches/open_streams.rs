//! Resident memory while many streams are open: a proxy that passes everything through, the same
//! proxy over the stack, and the gateway. Each is a process of its own.
//!
//! Run with `cargo bench -p opus-to-gemini --bench open_streams`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench may"
)]

mod support;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use clap::Parser;
use http_body_util::BodyExt;
use tokio::{task::JoinSet, time::sleep};
use tower_spillway_core::BoxError;

use self::support::{
    caller::{self, Direct},
    gateway::{self, Gateway},
    process::{self, Server},
    proxy,
    upstream::{Pace, Upstream},
};

#[derive(Parser)]
struct Args {
    #[arg(long, default_value_t = 1_000)]
    streams: usize,
    /// Of each prompt, in bytes.
    #[arg(long, default_value_t = 4_000)]
    prompt: usize,
    #[command(flatten)]
    proxy: proxy::Args,
    /// What cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Streams that stay open while they are in it, and the tokens that they have had.
#[derive(Default)]
struct Open {
    streams: JoinSet<()>,
    /// Of how many streams content is here.
    begun: Arc<AtomicUsize>,
}

impl Open {
    /// So many more, each with its first content here.
    async fn more(
        &mut self,
        client: &Direct,
        url: &str,
        chat: &Bytes,
        how_many: usize,
    ) -> Result<(), BoxError> {
        for _ in 0..how_many {
            let response = client.request(caller::request(url, chat)).await?;
            assert_eq!(response.status(), 200);
            let begun = self.begun.clone();
            let mut body = response.into_body();
            let first = body.frame().await.ok_or("no content")??;
            let mut seen = caller::has_content(first.data_ref().unwrap());
            begun.fetch_add(usize::from(seen), Ordering::Relaxed);
            self.streams.spawn(async move {
                while let Some(frame) = body.frame().await {
                    let frame = frame.expect("a stream that lasts");
                    let data = frame.data_ref().unwrap();
                    if !seen && caller::has_content(data) {
                        seen = true;
                        begun.fetch_add(1, Ordering::Relaxed);
                    }
                }
                panic!("a stream ended while it was measured");
            });
        }
        Ok(())
    }
}

struct Held {
    before: u64,
    open: u64,
}

const GAP: Duration = Duration::from_secs(1);

/// What a server holds with no stream open after the first few, and with all of them.
async fn measure(server: &Server, streams: usize, chat: &Bytes) -> Result<Held, BoxError> {
    let url = server.url();
    let mut warm = Open::default();
    warm.more(&caller::client(), url, chat, 20).await?;
    warm.streams.shutdown().await;
    // For the server to hear that they left.
    sleep(GAP).await;
    let before = server.resident()?;

    let client = caller::client();
    let mut open = Open::default();
    open.more(&client, url, chat, streams).await?;
    // A few tokens on each.
    sleep(GAP * 4).await;
    assert_eq!(open.begun.load(Ordering::Relaxed), streams);
    assert!(open.streams.try_join_next().is_none());
    let held = server.resident()?;
    assert!(server.descriptors()? >= 2 * streams);
    open.streams.shutdown().await;
    Ok(Held { before, open: held })
}

#[expect(clippy::cast_precision_loss, reason = "a figure to print")]
fn kib(kib: u64, per: usize) -> f64 {
    kib as f64 / per as f64
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let args = Args::parse();
    if args.proxy.is_asked_for() {
        return args.proxy.serve().await;
    }
    // Two of each stream in a proxy, and two here: the caller's and the upstream's.
    process::allow_descriptors(2 * u64::try_from(args.streams)? + 200)?;
    let url = Upstream::start(Pace {
        tokens: usize::MAX,
        gap: GAP,
    })?
    .url();
    let chat = caller::chat(args.prompt, true);
    println!(
        "{} streams, each with a prompt of {} bytes and a token a second",
        args.streams, args.prompt
    );
    let mut passed = None;
    for name in ["pass-through", "stack", "gateway"] {
        let at_once = u32::try_from(args.streams)? + 100;
        let gateway;
        let this;
        let server = if name == "gateway" {
            gateway = Gateway::start(&gateway::settings([&url, &url], at_once))?;
            gateway.server()
        } else {
            this = proxy::start(name, &url)?;
            &this
        };
        let Held { before, open } = measure(server, args.streams, &chat).await?;
        let each = kib(open.saturating_sub(before), args.streams);
        let of_plain = *passed.get_or_insert(kib(open, 1));
        println!(
            "{name:<24} before {:>5.1} MiB   open {:>6.1} MiB   a stream {each:>5.1} KiB   in all {:.2} of pass-through",
            kib(before, 1024),
            kib(open, 1024),
            kib(open, 1) / of_plain,
        );
    }
    Ok(())
}
