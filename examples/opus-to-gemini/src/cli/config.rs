//! `opus-to-gemini config`

use std::{path::PathBuf, process::ExitCode};

use opus_to_gemini::config::{Config, Profile};

use super::{out, setup};

#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// A file of settings; without one, those of a profile.
    file: Option<PathBuf>,
    /// The profile of a file that names none.
    #[arg(long, value_enum, default_value = "interactive")]
    profile: Name,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Command {
    /// Says everything that is wrong with a file, each with its line, or that nothing is; and warns
    /// of what can be used and is hardly meant.
    Check {
        /// The file.
        file: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Name {
    Interactive,
    Batch,
}

impl From<Name> for Profile {
    fn from(name: Name) -> Self {
        match name {
            Name::Interactive => Self::Interactive,
            Name::Batch => Self::Batch,
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(Command::Check { file }) = &args.command {
        let (config, warnings) = setup::read_with_warnings(file, Profile::Interactive)?;
        for warning in warnings {
            eprintln!("warning: {warning}");
        }
        let (targets, chains) = (config.targets.len(), config.chains.len());
        out::say(format_args!(
            "{} is fine: profile {}, {targets} targets, {chains} {}.\n",
            file.display(),
            config.profile,
            if chains == 1 { "chain" } else { "chains" },
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    let config = match &args.file {
        Some(file) => setup::read(file, args.profile.into())?,
        None => Config::of(args.profile.into()),
    };
    out::say(config)?;
    Ok(ExitCode::SUCCESS)
}
