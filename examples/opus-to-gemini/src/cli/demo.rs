//! `opus-to-gemini demo`

use std::process::ExitCode;

use opus_to_gemini::demo::{HEADER, Settings, play};

#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub(super) struct Args {
    /// Plays so many times as fast as real [default: 15].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=60))]
    speed: Option<u32>,
}

pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut settings = Settings::default();
    settings.speed = args.speed.unwrap_or(settings.speed);

    println!("{settings}\n\n{HEADER}");
    let incident = play(&settings, |phase| println!("{phase}")).await?;
    println!("\n{incident}");

    let calls: usize = settings.phases.iter().map(|p| p.calls).sum();
    if incident.answered() < calls {
        anyhow::bail!("not every call was answered");
    }
    Ok(ExitCode::SUCCESS)
}
