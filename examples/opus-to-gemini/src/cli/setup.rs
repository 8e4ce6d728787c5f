//! Which pipeline a command uses: the options that `chat` and `batch` share.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, anyhow, bail};
use opus_to_gemini::{
    config::{Config, Finding, Profile, Target},
    fake::Fakes,
    keys,
    pipeline::Pipeline,
};
use secrecy::SecretString;
use tower_spillway_core::Report;
use tower_spillway_llm::{PriceTable, Vendor};

use super::fakes;

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Options {
    /// A file of settings; `config` prints one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The chain of targets to ask.
    #[arg(long, value_name = "NAME", default_value = "default")]
    chain: String,
    /// Asks fake vendors on this machine in the place of the real ones: no keys, no network.
    #[arg(long, conflicts_with_all = ["base_url", "allow_missing"])]
    fake: bool,
    /// How long the fake vendors take to answer.
    #[arg(long, value_name = "DURATION", requires = "fake", value_parser = humantime::parse_duration)]
    fake_latency: Option<Duration>,
    /// Reaches all targets through one OpenAI-compatible gateway. As an SDK takes it, `/v1`
    /// included.
    #[arg(long, value_name = "URL", requires = "key_env")]
    base_url: Option<String>,
    /// The variable that holds the gateway's key.
    #[arg(long, value_name = "NAME", requires = "base_url")]
    key_env: Option<String>,
    /// Goes on without the targets whose key is missing, with a warning.
    #[arg(long)]
    allow_missing: bool,
    /// The model to ask first [default: claude-opus-5].
    #[arg(long, value_name = "MODEL")]
    opus_model: Option<String>,
    /// The model to ask when the first cannot serve [default: gemini-2.5-pro].
    #[arg(long, value_name = "MODEL")]
    gemini_model: Option<String>,
}

/// A pipeline, and what must live as long.
pub(super) struct Ready {
    pub(super) pipeline: Pipeline,
    pub(super) config: Config,
    pub(super) prices: PriceTable,
    pub(super) fakes: Option<Fakes>,
}

impl Ready {
    /// The variable that holds a target's key.
    pub(super) fn key_env(&self, target: &str) -> &str {
        let target = self.config.targets.get(target);
        target.map_or("its variable", |t| &t.key_env)
    }

    /// Where a call was sent, each address once.
    pub(super) fn urls(&self, report: &Report) -> Vec<&str> {
        let mut urls = Vec::new();
        for target in report.attempts.iter().filter_map(|a| a.target.as_ref()) {
            let target = self.config.targets.get(&*target.to_string());
            urls.extend(target.map(|t| &*t.url).filter(|url| !urls.contains(url)));
        }
        urls
    }

    pub(super) async fn stop(self) {
        if let Some(fakes) = self.fakes {
            fakes.stop().await;
        }
    }
}

/// Reads a file of settings; each error begins as a compiler's does.
pub(super) fn read(path: &Path, profile: Profile) -> anyhow::Result<Config> {
    read_with_warnings(path, profile).map(|(config, _)| config)
}

/// The same, with what is odd about it, a line each.
pub(super) fn read_with_warnings(
    path: &Path,
    profile: Profile,
) -> anyhow::Result<(Config, Vec<String>)> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("{shown} cannot be read"))?;
    let line = |finding: &Finding| match finding.line() {
        Some(line) => format!("{shown}:{line}: {}", finding.reason()),
        None => format!("{shown}: {}", finding.reason()),
    };
    let lines = |findings: &[Finding]| findings.iter().map(line).collect::<Vec<_>>();
    match Config::with_warnings(profile, &text) {
        Ok((config, warnings)) => Ok((config, lines(&warnings))),
        Err(error) => bail!(lines(error.findings()).join("\n")),
    }
}

/// Where keys come from.
pub(super) enum Keys {
    /// The variables that a file names.
    FromEnv,
    /// Those of the fakes before the variables. No target names another one then, but callers of a
    /// gateway bring keys all the same.
    Fake,
}

impl Keys {
    pub(super) fn get(&self, variable: &str) -> Option<SecretString> {
        match self {
            Self::FromEnv => keys::from_env(variable),
            Self::Fake => fakes::key(variable).or_else(|| keys::from_env(variable)),
        }
    }
}

impl Options {
    /// Puts the pipeline together.
    pub(super) async fn ready(&self, profile: Profile) -> anyhow::Result<Ready> {
        let mut config = match &self.config {
            Some(path) => read(path, profile)?,
            None => Config::of(profile),
        };
        self.change(&mut config)?;
        let (fakes, keys) = match self.fake {
            true => {
                let fakes = fakes::start(self.fake_latency).await?;
                fakes::point_at(&fakes, &mut config);
                (Some(fakes), Keys::Fake)
            }
            false => {
                self.drop_missing(&mut config)?;
                (None, Keys::FromEnv)
            }
        };
        let pipeline =
            Pipeline::from_config(&config, &self.chain, |name| keys.get(name))?.build()?;
        let prices = config.prices.table()?;
        Ok(Ready {
            pipeline,
            config,
            prices,
            fakes,
        })
    }

    /// The targets of the chain that do not drain.
    fn chain(&self, config: &Config) -> anyhow::Result<Vec<String>> {
        let names: Vec<_> = config.chains.keys().map(String::as_str).collect();
        let chain = config.targets_of(&self.chain).ok_or_else(|| {
            let known = names.join(", ");
            anyhow!("there is no chain {}. There is: {known}", self.chain)
        })?;
        let enabled = |name: &&str| config.targets.get(*name).is_some_and(|t| t.enabled);
        Ok(chain
            .into_iter()
            .filter(enabled)
            .map(str::to_owned)
            .collect())
    }

    /// Options over the file.
    fn change(&self, config: &mut Config) -> anyhow::Result<()> {
        let chain = self.chain(config)?;
        for (name, model) in [("opus", &self.opus_model), ("gemini", &self.gemini_model)] {
            let Some(model) = model else { continue };
            match config.targets.get_mut(name) {
                Some(target) if chain.iter().any(|n| n == name) => target.model.clone_from(model),
                _ => bail!(
                    "--{name}-model: no target {name} is in chain {}",
                    self.chain
                ),
            }
        }
        if let (Some(base), Some(key_env)) = (&self.base_url, &self.key_env) {
            let base = base.trim_end_matches('/');
            let base = base.strip_suffix("/chat/completions").unwrap_or(base);
            for target in config.targets.values_mut() {
                target.url = format!("{base}/chat/completions");
                target.vendor = Vendor::Gateway;
                target.key_env.clone_from(key_env);
            }
        }
        Ok(())
    }

    /// Every missing key at once; or the chain without their targets.
    fn drop_missing(&self, config: &mut Config) -> anyhow::Result<()> {
        let chain = self.chain(config)?;
        let missing = missing(config, &chain, self.allow_missing)?;
        for name in &missing {
            eprintln!("warning: {}", left_out(config, name));
        }
        if !missing.is_empty() {
            let left = chain.into_iter().filter(|n| !missing.contains(n)).collect();
            config.chains.insert(self.chain.clone(), left);
        }
        Ok(())
    }
}

/// Those of the targets whose key is missing; an error if they are needed.
pub(super) fn missing(
    config: &Config,
    names: &[String],
    allowed: bool,
) -> anyhow::Result<Vec<String>> {
    let variable = |name: &String| config.targets.get(name).map(|t: &Target| &t.key_env);
    let is_missing = |name: &&String| {
        let variable = variable(name).filter(|v| !v.is_empty());
        variable.is_some_and(|v| keys::from_env(v).is_none())
    };
    let missing: Vec<String> = names.iter().filter(is_missing).cloned().collect();
    let others_left = missing.len() < names.len();
    let may_go_on = allowed && others_left;
    if !missing.is_empty() && !may_go_on {
        let targets = missing.iter().filter_map(|name| config.targets.get(name));
        bail!(no_key(targets, allowed, others_left));
    }
    Ok(missing)
}

/// What is told of a target whose key is missing.
pub(super) fn left_out(config: &Config, name: &str) -> String {
    let variable = config.targets.get(name).map(|target| &target.key_env);
    let variable = variable.map_or("its key", String::as_str);
    format!("target {name} is left out: {variable} is not set")
}

/// Which keys are missing, and what can be done.
fn no_key<'t>(
    missing: impl Iterator<Item = &'t Target>,
    allowed: bool,
    others_left: bool,
) -> String {
    let (mut variables, mut pages) = (Vec::new(), Vec::new());
    for target in missing {
        let variable = target.key_env.as_str();
        if !variables.contains(&variable) {
            variables.push(variable);
        }
        pages.extend(key_page(target.vendor).filter(|page| !pages.contains(page)));
    }
    let are = if variables.len() == 1 { "is" } else { "are" };
    let mut said = format!("{} {are} not set.", listed(&variables));
    if allowed {
        said.insert_str(0, "no target is left: ");
    }
    if !pages.is_empty() {
        said += &format!("\nKeys are made at {}.", listed(&pages));
    }
    said += match (variables.len(), others_left) {
        (1, false) => "\nSet it in the environment.",
        (1, true) => "\nSet it in the environment, or go on without its target: --allow-missing.",
        (_, false) => "\nSet them in the environment.",
        (_, true) => {
            "\nSet them in the environment, or go on without their targets: --allow-missing."
        }
    };
    said + "\nTry without any key: --fake."
}

/// As a sentence has it: `a, b and c`.
fn listed(all: &[&str]) -> String {
    match all {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Where a vendor's keys are made, if known.
fn key_page(vendor: Vendor) -> Option<&'static str> {
    match vendor {
        Vendor::Anthropic | Vendor::AnthropicCompat => {
            Some("https://console.anthropic.com/settings/keys")
        }
        Vendor::Gemini | Vendor::GeminiCompat => Some("https://aistudio.google.com/apikey"),
        _ => None,
    }
}
