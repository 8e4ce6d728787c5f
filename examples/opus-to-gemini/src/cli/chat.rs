//! `opus-to-gemini chat`

use std::{
    io::{self, IsTerminal, Read},
    process::ExitCode,
};

use anyhow::{Context, anyhow, bail};
use opus_to_gemini::{
    chat::{Asked, Chat, ChatError, Record, ask, ask_streaming},
    config::Profile,
};
use serde_json::json;
use tower_spillway_core::Report;

use super::{
    out,
    setup::{Options, Ready},
};

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// What to ask; `-` reads it from stdin.
    prompt: String,
    /// The most tokens of the answer; the target's default otherwise.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    /// One JSON object on stdout: the record, and the answer or the error.
    #[arg(long)]
    json: bool,
    /// Prints the answer as it comes; `auto` does on a terminal.
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        conflicts_with = "json"
    )]
    stream: When,
    #[command(flatten)]
    options: Options,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

impl Args {
    fn streams(&self) -> bool {
        match self.stream {
            When::Auto => !self.json && io::stdout().is_terminal(),
            When::Always => true,
            When::Never => false,
        }
    }

    fn chat(&self) -> anyhow::Result<Chat> {
        let mut prompt = self.prompt.clone();
        if prompt == "-" {
            prompt.clear();
            let read = io::stdin().lock().read_to_string(&mut prompt);
            read.context("stdin cannot be read")?;
            if prompt.trim().is_empty() {
                bail!("there is no prompt on stdin");
            }
        } else if prompt.trim().is_empty() {
            bail!("the prompt is empty; - reads it from stdin");
        }
        let chat = Chat::new(prompt);
        Ok(match self.max_tokens {
            Some(most) => chat.max_tokens(most),
            None => chat,
        })
    }
}

pub(super) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let chat = args.chat()?;
    let ready = args.options.ready(Profile::Interactive).await?;
    let code = match (args.json, args.streams()) {
        (true, _) => print_json(&ready, ask(&ready.pipeline, &chat).await)?,
        (false, true) => print_stream(&ready, &chat).await?,
        (false, false) => print(&ready, ask(&ready.pipeline, &chat).await)?,
    };
    ready.stop().await;
    Ok(code)
}

fn record(ready: &Ready, asked: &Asked) -> Record {
    Record::new(&asked.report, asked.usage(), &ready.prices)
}

fn print(ready: &Ready, asked: Asked) -> anyhow::Result<ExitCode> {
    eprintln!("{}", serde_json::to_string(&record(ready, &asked))?);
    let answer = asked.answer;
    let answer = answer.map_err(|error| explain(ready, &asked.report, error))?;
    out::say(format_args!("{}\n", answer.text))?;
    Ok(ExitCode::SUCCESS)
}

/// The record comes last: who reads along does not want it in the answer's place.
async fn print_stream(ready: &Ready, chat: &Chat) -> anyhow::Result<ExitCode> {
    let mut printed = Ok(());
    let asked = ask_streaming(&ready.pipeline, chat, |text| {
        if printed.is_ok() {
            printed = out::say(text);
        }
    });
    let asked = asked.await;
    printed?;
    if asked.report.first_content.is_some() {
        out::say("\n")?;
    }
    eprintln!("{}", serde_json::to_string(&record(ready, &asked))?);
    let answer = asked.answer;
    answer.map_err(|error| explain(ready, &asked.report, error))?;
    Ok(ExitCode::SUCCESS)
}

fn print_json(ready: &Ready, asked: Asked) -> anyhow::Result<ExitCode> {
    let mut all = serde_json::to_value(record(ready, &asked))?;
    let (name, value, code) = match asked.answer {
        Ok(answer) => ("answer", json!(answer.text), ExitCode::SUCCESS),
        Err(error) => {
            let status = error.status();
            let message = format!("{:#}", explain(ready, &asked.report, error));
            let error = json!({"status": status, "message": message});
            ("error", error, ExitCode::FAILURE)
        }
    };
    if let Some(all) = all.as_object_mut() {
        all.insert(name.into(), value);
    }
    out::say(format_args!("{all}\n"))?;
    Ok(code)
}

/// The error, with what to do next.
fn explain(ready: &Ready, report: &Report, error: ChatError) -> anyhow::Error {
    let next = match &error {
        ChatError::Vendor {
            target,
            status,
            message,
            ..
        } => match status {
            401 | 403 => Some(format!("Is the key in {} right?", ready.key_env(target))),
            // Gemini's way to say it.
            400 if message.contains("API key") => {
                Some(format!("Is the key in {} right?", ready.key_env(target)))
            }
            404 => Some(format!(
                "Is the model right? Another one: --{target}-model MODEL"
            )),
            429 | 500.. => Some("All targets were asked. Try again later.".into()),
            _ => None,
        },
        ChatError::Broken { .. } => {
            Some("What is printed is a part of the answer. Ask again.".into())
        }
        ChatError::AllRefused(_) => Some("Try again later.".to_owned()),
        ChatError::NoAnswer(_) => {
            let urls = ready.urls(report);
            let tried = match urls.is_empty() {
                true => String::new(),
                false => format!("Tried {}.\n", urls.join(" and ")),
            };
            Some(format!("{tried}Is the network up, and may it reach them?"))
        }
        _ => None,
    };
    match next {
        // The sources are in the text already, so that the advice comes last.
        Some(next) => anyhow!("{:#}\n{next}", anyhow::Error::from(error)),
        None => error.into(),
    }
}
