//! `opus-to-gemini chat`

use std::process::ExitCode;

use anyhow::{Context, anyhow};
use opus_to_gemini::{
    chat::{Chat, ChatError, Record, ask},
    fake::{FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, Fakes},
    keys::{ANTHROPIC_API_KEY, GEMINI_API_KEY, Keys},
    pipeline::{Pipeline, Upstream},
};
use tower_spillway_core::Chance;

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// What to ask.
    prompt: String,
    /// Asks two fake vendors on this machine: no keys, no network.
    #[arg(long)]
    fake: bool,
    /// The model to ask first [default: claude-opus-5].
    #[arg(long, value_name = "MODEL")]
    opus_model: Option<String>,
    /// The model to ask when the first cannot serve [default: gemini-2.5-pro].
    #[arg(long, value_name = "MODEL")]
    gemini_model: Option<String>,
    /// The most tokens of the answer; the vendor's own limit by default.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
}

pub(super) async fn run(args: Args) -> anyhow::Result<ExitCode> {
    let fakes = if args.fake {
        let fakes = Fakes::start(&Chance::default()).await;
        Some(fakes.context("the fake vendors could not be started")?)
    } else {
        None
    };
    let (mut opus, mut gemini) = match &fakes {
        Some(fakes) => (
            Upstream::opus(FAKE_ANTHROPIC_KEY).url(fakes.anthropic.url()),
            Upstream::gemini(FAKE_GEMINI_KEY).url(fakes.gemini.url()),
        ),
        None => {
            let keys = Keys::from_env().map_err(|missing| anyhow!("{missing}.\n{NO_KEY}"))?;
            (
                Upstream::opus(keys.anthropic),
                Upstream::gemini(keys.gemini),
            )
        }
    };
    if let Some(model) = args.opus_model {
        opus = opus.model(model);
    }
    if let Some(model) = args.gemini_model {
        gemini = gemini.model(model);
    }
    let pipeline = Pipeline::builder().target(opus).target(gemini).build()?;

    let mut chat = Chat::new(args.prompt);
    if let Some(most) = args.max_tokens {
        chat = chat.max_tokens(most);
    }
    let asked = ask(&pipeline, &chat).await;
    eprintln!("{}", serde_json::to_string(&Record::from(&asked.report))?);
    let answer = asked.answer.map_err(explain)?;
    println!("{answer}");
    if let Some(fakes) = fakes {
        fakes.stop().await;
    }
    Ok(ExitCode::SUCCESS)
}

const NO_KEY: &str = "\
Keys are made at https://console.anthropic.com/settings/keys and https://aistudio.google.com/apikey.
Set them in the environment, or try without any: opus-to-gemini chat --fake PROMPT";

/// The error, with what to do next.
fn explain(error: ChatError) -> anyhow::Error {
    let next = match &error {
        ChatError::Vendor {
            target,
            status,
            message,
        } => match status {
            401 | 403 => Some(format!("Is the key in {} right?", key_of(target))),
            // Gemini's way to say it.
            400 if message.contains("API key") => {
                Some(format!("Is the key in {} right?", key_of(target)))
            }
            404 => Some(format!(
                "Is the model right? Another one: --{target}-model MODEL"
            )),
            429 | 500.. => Some("Both targets were asked. Try again later.".into()),
            _ => None,
        },
        ChatError::NoAnswer(_) => Some("Is the network up, and may it reach both vendors?".into()),
        _ => None,
    };
    match next {
        // The sources are in the text already, so that the advice comes last.
        Some(next) => anyhow!("{:#}\n{next}", anyhow::Error::from(error)),
        None => error.into(),
    }
}

fn key_of(target: &str) -> &'static str {
    match target {
        "opus" => ANTHROPIC_API_KEY,
        _ => GEMINI_API_KEY,
    }
}
