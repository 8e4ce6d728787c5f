//! `opus-to-gemini`: the reference stack, to try and to use.

mod cli;

use std::process::ExitCode;

use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    match cli::run(cli::Args::parse()).await {
        Ok(code) => code,
        Err(error) if error.is::<cli::Closed>() => ExitCode::SUCCESS,
        Err(error) => {
            // With its sources on one line.
            eprintln!("opus-to-gemini: {error:#}");
            ExitCode::FAILURE
        }
    }
}
