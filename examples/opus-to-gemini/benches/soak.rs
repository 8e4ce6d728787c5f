//! A soak of the gateway: very many calls while both vendors misbehave at random. No call may be
//! lost, no memory grow after the warm-up, no descriptor be left open.
//!
//! Run with `cargo bench -p opus-to-gemini --bench soak`, with `-- --calls 5000` for a short one.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench may"
)]

mod support;

use std::process::ExitCode;

use clap::Parser;
use tower_spillway_core::BoxError;

use self::support::{
    process,
    soak::{Plan, Soaked, soak},
    verdict::Got,
};

#[derive(Parser)]
struct Args {
    #[arg(long, default_value_t = 100_000)]
    calls: usize,
    #[arg(long, default_value_t = 200)]
    in_flight: usize,
    /// Of a hundred requests, those with which a vendor misbehaves.
    #[arg(long, default_value_t = 5)]
    faults: u8,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What cargo adds.
    #[arg(long, hide = true)]
    bench: bool,
}

/// The most that the second half of the calls may hold beyond the first half after its warm-up.
const MAY_GROW_KIB: u64 = 2 * 1024;

#[tokio::main]
async fn main() -> Result<ExitCode, BoxError> {
    let args = Args::parse();
    // A call has two descriptors at most in the gateway, and four here.
    process::allow_descriptors(u64::try_from(args.in_flight)? * 6 + 200)?;
    let soaked = soak(Plan {
        calls: args.calls,
        in_flight: args.in_flight,
        faults: args.faults,
        seed: args.seed,
    })
    .await?;
    Ok(if report(&args, &soaked) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints the figures, and says whether all is as it must be.
fn report(args: &Args, soaked: &Soaked) -> bool {
    let secs = soaked.took.as_secs_f64();
    println!(
        "{} calls at {} in flight, {} % of requests with a fault: {secs:.1} s",
        args.calls, args.in_flight, args.faults
    );
    let mut lost = 0;
    for (got, count) in &soaked.counts {
        match got {
            Got::Whole(model) => println!("{count:>8} whole answers of {model}"),
            Got::Error(200, code) => println!("{count:>8} streams that ended in one error: {code}"),
            Got::Error(status, code) => println!("{count:>8} errors: {status} {code}"),
            Got::Left => println!("{count:>8} callers who left"),
            Got::Lost(why) => {
                lost += count;
                println!("{count:>8} LOST: {why}");
            }
        }
    }
    println!("{lost:>8} lost");

    let parts: Vec<String> = soaked
        .resident
        .iter()
        .map(|k| format!("{:.1}", mib(*k)))
        .collect();
    println!("resident, MiB, after each twentieth: {}", parts.join(" "));
    // The first quarter warms up.
    let after: &[u64] = &soaked.resident[soaked.resident.len() / 4..];
    let (early, late) = after.split_at(after.len() / 3);
    let most = |part: &[u64]| part.iter().copied().max().unwrap_or(0);
    let (early, late) = (most(early), most(late));
    let flat = late <= early + MAY_GROW_KIB;
    println!(
        "the most after the warm-up {:.1} MiB, later {:.1} MiB: {}",
        mib(early),
        mib(late),
        if flat { "flat" } else { "GROWS" }
    );
    let [start, most, end] = soaked.descriptors;
    let closed = end <= start;
    println!(
        "descriptors: {start} before, {most} at most, {end} after: {}",
        if closed { "none is left" } else { "LEFT OPEN" }
    );
    lost == 0 && flat && closed
}

#[expect(clippy::cast_precision_loss, reason = "a figure to print")]
fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
