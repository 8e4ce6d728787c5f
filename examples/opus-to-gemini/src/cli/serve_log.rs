//! The log of `serve`, on stderr.

use opus_to_gemini::config::LogFormat;
use tracing::Level;
use tracing_subscriber::{
    Layer, filter::Targets, fmt, layer::SubscriberExt, registry::Registry, util::SubscriberInitExt,
};

/// One line per call, warnings, and all that the layers do if it is `verbose`.
pub(super) fn start(format: LogFormat, verbose: bool) {
    let others = if verbose { Level::INFO } else { Level::WARN };
    let shown = Targets::new()
        .with_default(others)
        .with_target("opus_to_gemini", Level::INFO);
    let lines = fmt::layer().with_writer(std::io::stderr).with_target(false);
    let lines = match format {
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
        _ => lines.boxed(),
    };
    Registry::default().with(lines.with_filter(shown)).init();
}
