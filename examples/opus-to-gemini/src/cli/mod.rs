//! The command line.

mod chat;
mod demo;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chat calls to Claude Opus that go on to Gemini when they must.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Args {
    /// `demo` if none is given.
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Plays an incident against the stack, on this machine alone: no keys, no network.
    Demo(demo::Args),
    /// Sends one prompt: the answer on stdout, a record of the call as JSON on stderr.
    ///
    /// Keys come from ANTHROPIC_API_KEY and GEMINI_API_KEY.
    Chat(chat::Args),
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.command.unwrap_or(Command::Demo(demo::Args::default())) {
        Command::Demo(args) => demo::run(&args).await,
        Command::Chat(args) => chat::run(args).await,
    }
}
