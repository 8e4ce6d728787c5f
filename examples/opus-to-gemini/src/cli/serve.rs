//! `opus-to-gemini serve`

use std::{net::SocketAddr, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::Context;
use opus_to_gemini::{
    config::{Config, LogFormat, Profile},
    fake::Fakes,
    gateway::Gateway,
};
use tokio::net::TcpListener;

use super::{
    fakes, out, serve_log,
    setup::{self, Keys},
    signals::{self, Signal},
};

#[derive(Clone, Debug, clap::Args)]
pub(super) struct Args {
    /// A file of settings; `config` prints one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The address to listen on [default: that of the file, or 127.0.0.1:8080].
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<SocketAddr>,
    /// How the log is written [default: that of the file, or text].
    #[arg(long, value_enum, value_name = "FORMAT")]
    log: Option<Format>,
    /// Asks fake vendors on this machine in the place of the real ones: no keys, no network.
    #[arg(long, conflicts_with = "allow_missing")]
    fake: bool,
    /// How long the fake vendors take to answer.
    #[arg(long, value_name = "DURATION", requires = "fake", value_parser = humantime::parse_duration)]
    fake_latency: Option<Duration>,
    /// Goes on without the targets whose key is missing, with a warning.
    #[arg(long)]
    allow_missing: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

pub(super) async fn run(args: Args, verbose: bool) -> anyhow::Result<ExitCode> {
    let fakes = match args.fake {
        true => Some(fakes::start(args.fake_latency).await?),
        false => None,
    };
    let loaded = args.load(fakes.as_ref())?;
    let config = &loaded.config;
    serve_log::start(config.gateway.log, verbose);
    loaded.warn();
    let gateway = Gateway::new(config, |name| loaded.keys.get(name))?;
    let listen = config.gateway.listen;
    let listener = TcpListener::bind(listen).await;
    let listener = listener.with_context(|| format!("{listen} cannot be listened on"))?;
    let address = listener.local_addr()?;
    // It serves whether that is read or not.
    out::say(format_args!(
        "Listening on http://{address}: an SDK's base URL is http://{address}/v1\n"
    ))
    .ok();

    let stops = signals::stops()?;
    let hang_up = Signal::hang_up()?;
    let serving = gateway.clone().serve(
        listener,
        signals::told(stops.clone(), 1),
        signals::told(stops, 2),
    );
    // A task of its own: taking a file in takes its time, and nobody is to wait for it.
    let serving = tokio::spawn(serving);
    tokio::select! {
        served = serving => served??,
        () = args.reload(&gateway, fakes.as_ref(), hang_up) => {}
    }
    if let Some(fakes) = fakes {
        fakes.stop().await;
    }
    Ok(ExitCode::SUCCESS)
}

/// The file, with the options over it.
struct Loaded {
    config: Config,
    keys: Keys,
    /// What is odd about it, a line each.
    warnings: Vec<String>,
}

impl Loaded {
    fn warn(&self) {
        for warning in &self.warnings {
            tracing::warn!("{warning}");
        }
    }
}

impl Args {
    fn load(&self, fakes: Option<&Fakes>) -> anyhow::Result<Loaded> {
        let (mut config, mut warnings) = match &self.config {
            Some(path) => setup::read_with_warnings(path, Profile::Interactive)?,
            None => (Config::of(Profile::Interactive), Vec::new()),
        };
        if let Some(listen) = self.listen {
            config.gateway.listen = listen;
        }
        if let Some(format) = self.log {
            config.gateway.log = match format {
                Format::Text => LogFormat::Text,
                Format::Json => LogFormat::Json,
            };
        }
        if let Some(fakes) = fakes {
            fakes::point_at(fakes, &mut config);
            return Ok(Loaded {
                config,
                keys: Keys::Fake,
                warnings,
            });
        }
        let names = asked(&config);
        for name in setup::missing(&config, &names, self.allow_missing)? {
            warnings.push(setup::left_out(&config, &name));
            if let Some(target) = config.targets.get_mut(&name) {
                target.enabled = false;
            }
        }
        Ok(Loaded {
            config,
            keys: Keys::FromEnv,
            warnings,
        })
    }

    /// Takes the file in again at each SIGHUP; what is wrong with it leaves everything as it was.
    async fn reload(&self, gateway: &Gateway, fakes: Option<&Fakes>, mut hang_up: Signal) {
        loop {
            hang_up.next().await;
            let loaded = self.load(fakes).and_then(|loaded| {
                loaded.warn();
                gateway.reload(&loaded.config, |name| loaded.keys.get(name))?;
                Ok(())
            });
            match loaded {
                Ok(()) => tracing::info!("the settings were taken in again"),
                Err(error) => {
                    let error = format!("{error:#}");
                    tracing::error!(error, "the settings stay as they were");
                }
            }
        }
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "an address and a port are needed, as in 127.0.0.1:8080".to_owned())
}

/// The targets that some chain or route leads to, and that do not drain.
fn asked(config: &Config) -> Vec<String> {
    let chains = config
        .chains
        .keys()
        .filter_map(|chain| config.targets_of(chain));
    let routes = config
        .routes
        .values()
        .filter_map(|route| config.targets_of_route(route));
    let mut names: Vec<String> = Vec::new();
    for name in chains.chain(routes).flatten() {
        let enabled = config
            .targets
            .get(name)
            .is_some_and(|target| target.enabled);
        if enabled && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}
