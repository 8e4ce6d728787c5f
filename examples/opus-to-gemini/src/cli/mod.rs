//! The command line.

mod batch;
mod chat;
mod config;
mod demo;
mod fakes;
mod out;
mod serve;
mod serve_log;
mod setup;
mod signals;
mod verbose;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing::Level;

pub(crate) use self::out::Closed;

/// Chat calls to Claude Opus that go on to Gemini when they must.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 80)]
pub(crate) struct Args {
    /// `demo` if none is given.
    #[command(subcommand)]
    command: Option<Command>,
    /// Shows on stderr each retry (attempt, class, status, time, wait, cause), hop and change of a
    /// breaker.
    #[arg(short, long, global = true)]
    verbose: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Plays an incident against three clients, on this machine alone: no keys, no network.
    Demo(demo::Args),
    /// Sends one prompt: the answer on stdout, a record of the call as JSON on stderr.
    ///
    /// Keys come from ANTHROPIC_API_KEY and GEMINI_API_KEY, unless a file names others.
    Chat(Box<chat::Args>),
    /// Works off a file of prompts, one a line, through outages and restarts.
    Batch(Box<batch::Args>),
    /// Serves chats as an OpenAI-compatible gateway, on this machine unless told otherwise.
    ///
    /// SIGHUP takes the file in again; SIGTERM and Ctrl-C let calls under way end first.
    Serve(serve::Args),
    /// Prints the settings in force, with comments and without keys.
    Config(config::Args),
}

pub(crate) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let command = args.command.unwrap_or(Command::Demo(demo::Args::default()));
    if let Command::Serve(serve) = command {
        return serve::run(serve, args.verbose).await;
    }
    verbose::start(match (&command, args.verbose) {
        (_, true) => Level::INFO,
        // What breaks there is meant to, and is in the table.
        (Command::Demo(_), false) => Level::ERROR,
        _ => Level::WARN,
    });
    match command {
        Command::Demo(args) => demo::run(&args).await,
        Command::Chat(args) => chat::run(*args).await,
        Command::Batch(args) => batch::run_args(*args).await,
        Command::Config(args) => config::run(&args),
        Command::Serve(args) => serve::run(args, false).await,
    }
}
