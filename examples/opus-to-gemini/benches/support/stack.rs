//! The stack, as shipped but for what a bench must change: addresses and how much at one time.

use opus_to_gemini::{
    config::Config,
    pipeline::{Pipeline, Upstream},
};
use tower_spillway_core::BoxError;

/// Both targets at one address, with room for so many calls at a time.
pub fn pipeline(url: &str, at_once: u32) -> Result<Pipeline, BoxError> {
    let mut config = Config::interactive();
    config.pool.connections = at_once;
    let [opus, gemini] = [Upstream::opus("key"), Upstream::gemini("key")]
        .map(|upstream| upstream.url(url).in_flight(at_once));
    let builder = Pipeline::builder().config(config);
    Ok(builder.target(opus).target(gemini).build()?)
}
