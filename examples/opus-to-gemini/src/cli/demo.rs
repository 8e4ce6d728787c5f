//! `opus-to-gemini demo`

use std::{fs::OpenOptions, io::IsTerminal, path::PathBuf, process::ExitCode};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use opus_to_gemini::demo::{Played, Settings, play};

use super::out;

#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Args {
    /// Plays so many times as fast as real [default: 15].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=60))]
    speed: Option<u32>,
    /// Draws latencies and jitter from another seed [default: 42]. Figures vary a little all the
    /// same: sockets and time are real.
    #[arg(long)]
    seed: Option<u64>,
    /// Writes every report and both vendors' logs, of which the table is made.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut settings = Settings::default();
    settings.speed = args.speed.unwrap_or(settings.speed);
    settings.seed = args.seed.unwrap_or(settings.seed);
    if let Some(file) = &args.json {
        // What cannot be written is told before it is waited for; an old one stays until then.
        let open = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(file);
        open.with_context(|| format!("{} cannot be written", file.display()))?;
    }
    out::say(format_args!("{settings}\n\n"))?;

    let bar = bar(&settings);
    let ticks = bar.clone();
    let played = play(&settings, move |tick| {
        ticks.set_message(tick.phase);
        ticks.inc(1);
    })
    .await?;
    bar.finish_and_clear();

    // Whether the table is read or not, the file is written; and the other way round.
    let shown = out::say(&played);
    if let Some(file) = &args.json {
        write(&played, file)?;
    }
    shown?;
    if let Some(file) = &args.json {
        let file = file.display();
        out::say(format_args!(
            "\nEvery report and both vendors' logs: {file}\n"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write(played: &Played, file: &PathBuf) -> anyhow::Result<()> {
    let json = serde_json::to_vec(played)?;
    std::fs::write(file, json).with_context(|| format!("{} cannot be written", file.display()))
}

/// On a terminal only.
fn bar(settings: &Settings) -> ProgressBar {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let calls = u64::try_from(settings.calls()).unwrap_or(u64::MAX);
    let bar = ProgressBar::with_draw_target(Some(calls.saturating_mul(3)), target);
    let shape = "{bar:30} {pos}/{len} calls, {eta} left, {msg}";
    if let Ok(style) = ProgressStyle::with_template(shape) {
        bar.set_style(style);
    }
    bar
}
