//! `opus-to-gemini batch`

use std::{
    fs,
    io::{self, IsTerminal},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use opus_to_gemini::{
    batch::{Item, Journal, Outcome, Progress, Summary, items, run},
    config::Profile,
};

use super::{out, setup::Options};

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// One prompt a line: a JSON string, an object with `prompt` or `messages`, or a line of
    /// OpenAI's batch format. `-` reads stdin.
    file: PathBuf,
    /// Where answers go, one a line in the order of the input.
    #[arg(long)]
    out: PathBuf,
    /// Goes on where an earlier run was stopped or killed; items that failed are tried again.
    #[arg(long)]
    resume: bool,
    /// The input is meant to be another one than before: lines that say something else are asked
    /// anew, answers to lines that are gone are dropped.
    #[arg(long, requires = "resume")]
    edited: bool,
    /// Items under way at one time [default: 8].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    concurrency: Option<u32>,
    /// How often an item goes back into the queue [default: 5].
    #[arg(long)]
    max_requeues: Option<u32>,
    /// Lets items go back until then, however often.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    give_up_after: Option<Duration>,
    #[command(flatten)]
    options: Options,
}

impl Args {
    fn items(&self) -> anyhow::Result<Vec<Item>> {
        let from_stdin = self.file == Path::new("-");
        let shown = match from_stdin {
            true => "stdin".to_owned(),
            false => self.file.display().to_string(),
        };
        if !from_stdin
            && let (Ok(file), Ok(out)) = (self.file.canonicalize(), self.out.canonicalize())
            && file == out
        {
            bail!("{shown} is the input: choose another --out");
        }
        let text = match from_stdin {
            true => io::read_to_string(io::stdin().lock()),
            false => fs::read_to_string(&self.file),
        };
        let items = items(&text.with_context(|| format!("{shown} cannot be read"))?);
        if items.is_empty() {
            bail!("{shown} has no lines.\nOne prompt a line, as JSON: \"What is a spillway?\"");
        }
        Ok(items)
    }

    /// What the same command needs, too.
    fn again(&self) -> &'static str {
        match self.file == Path::new("-") {
            true => ", with the same on stdin",
            false => "",
        }
    }
}

pub(super) async fn run_args(args: Args) -> anyhow::Result<ExitCode> {
    let items = args.items()?;
    let ready = args.options.ready(Profile::Batch).await?;
    let mut config = ready.config.batch.clone();
    config.concurrency = args.concurrency.unwrap_or(config.concurrency);
    config.max_requeues = args.max_requeues.unwrap_or(config.max_requeues);
    config.give_up_after = args.give_up_after.or(config.give_up_after);

    for probing in ready.pipeline.probes() {
        tokio::spawn(probing);
    }
    let mut journal = match args.resume {
        true => Journal::resume(&args.out, &items, args.edited)?,
        false => Journal::create(&args.out)?,
    };
    let earlier = items.iter().filter(|item| journal.has(item)).count();
    let mut bar = Bar::new(items.len(), earlier);
    let stop = ctrl_c(bar.bar.clone());
    let summary = run(
        &ready.pipeline,
        &config,
        &ready.prices,
        &items,
        &mut journal,
        &mut bar,
        stop,
    )
    .await?;
    bar.bar.finish_and_clear();
    if summary.left == 0 {
        journal.finish(&items)?;
    }
    ready.stop().await;
    Ok(report(summary, &args))
}

fn report(summary: Summary, args: &Args) -> ExitCode {
    let Summary { ok, fail, left, .. } = summary;
    if left > 0 {
        // What came of it is in the files, and in the exit code.
        out::say(format_args!("stopped: ok={ok} fail={fail} left={left}\n")).ok();
        eprintln!("The same command with --resume goes on{}.", args.again());
        // As a shell says of a program that Ctrl-C ended.
        return ExitCode::from(130);
    }
    out::say(format_args!("done: ok={ok} fail={fail}\n")).ok();
    if fail > 0 {
        let out = args.out.display();
        eprintln!(
            "What went wrong is in {out}. The same command with --resume tries it again{}.",
            args.again()
        );
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Ends at the first Ctrl-C; the second ends the program.
async fn ctrl_c(bar: ProgressBar) {
    if tokio::signal::ctrl_c().await.is_err() {
        return std::future::pending().await;
    }
    bar.suspend(|| eprintln!("Ending what is under way; Ctrl-C again to leave it."));
    tokio::spawn(async {
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(130);
        }
    });
}

/// The progress bar, on a terminal.
struct Bar {
    bar: ProgressBar,
    failed: u64,
    back: u64,
}

impl Bar {
    fn new(all: usize, earlier: usize) -> Self {
        let target = match io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let all = u64::try_from(all).unwrap_or(u64::MAX);
        let bar = ProgressBar::with_draw_target(Some(all), target);
        let shape = "{bar:30} {pos}/{len} {per_sec} {eta} left {msg}";
        if let Ok(style) = ProgressStyle::with_template(shape) {
            bar.set_style(style);
        }
        // So that the rate is of this run.
        let bar = bar.with_position(u64::try_from(earlier).unwrap_or(u64::MAX));
        bar.reset_eta();
        Self {
            bar,
            failed: 0,
            back: 0,
        }
    }

    fn tell(&self) {
        let (failed, back) = (self.failed, self.back);
        self.bar.set_message(match (failed, back) {
            (0, 0) => String::new(),
            _ => format!("fail={failed} requeued={back}"),
        });
    }
}

impl Progress for Bar {
    fn done(&mut self, outcome: &Outcome) {
        self.failed += u64::from(!outcome.is_ok());
        self.tell();
        self.bar.inc(1);
    }

    fn back(&mut self) {
        self.back += 1;
        self.tell();
    }

    fn paused(&mut self, wait: Duration) {
        self.bar
            .set_message(format!("all targets refuse: waiting {:.0?}", wait));
    }
}
