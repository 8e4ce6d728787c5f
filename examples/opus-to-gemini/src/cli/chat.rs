//! `opus-to-gemini chat`

use std::process::ExitCode;

use anyhow::anyhow;
use opus_to_gemini::{
    chat::{Asked, Chat, ChatError, Record, ask},
    config::Profile,
};
use serde_json::json;
use tower_spillway_core::Report;

use super::setup::{Options, Ready};

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// What to ask.
    prompt: String,
    /// The most tokens of the answer; the target's default otherwise.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    /// One JSON object on stdout: the record, and the answer or the error.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    options: Options,
}

pub(super) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let ready = args.options.ready(Profile::Interactive).await?;
    let mut chat = Chat::new(args.prompt);
    if let Some(most) = args.max_tokens {
        chat = chat.max_tokens(most);
    }
    let asked = ask(&ready.pipeline, &chat).await;
    let record = Record::new(&asked.report, asked.usage(), &ready.prices);
    let code = match args.json {
        true => print_json(&ready, &record, asked)?,
        false => {
            eprintln!("{}", serde_json::to_string(&record)?);
            let answer = asked
                .answer
                .map_err(|error| explain(&ready, &asked.report, error))?;
            println!("{}", answer.text);
            ExitCode::SUCCESS
        }
    };
    ready.stop().await;
    Ok(code)
}

fn print_json(ready: &Ready, record: &Record, asked: Asked) -> anyhow::Result<ExitCode> {
    let mut all = serde_json::to_value(record)?;
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
    println!("{all}");
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
