//! What can be wrong with a pipeline before its first call.

use tower_spillway_core::{BoxError, InvalidConfig};

use crate::config::ConfigError;

/// A pipeline that cannot be built. Never shows a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A figure is out of its bounds.
    #[error(transparent)]
    Invalid(#[from] InvalidConfig),
    /// A file that is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A chain that is not in the configuration.
    #[error("there is no chain {chain} in the configuration")]
    NoChain {
        /// Its name.
        chain: String,
    },
    /// A route to no targets; not in a configuration that was read from a file.
    #[error("the route of {model} leads to no targets")]
    NoRoute {
        /// The name or the pattern.
        model: String,
    },
    /// A key that is not set.
    #[error("{variable} is not set: it holds the key of target {target}")]
    MissingKey {
        /// Which target.
        target: String,
        /// The variable.
        variable: String,
    },
    /// An address that is none.
    #[error("the address of target {target} is not a URL: {url}")]
    BadUrl {
        /// Which target.
        target: String,
        /// What was given.
        url: String,
    },
    /// An address with a user, a password or a key in it, which logs would show.
    #[error("the address of target {target} holds a user, a password or a key")]
    SecretInUrl {
        /// Which target.
        target: String,
    },
    /// A key would travel in the clear.
    #[error("the address of target {target} must be https, or http on this machine: {url}")]
    Insecure {
        /// Which target.
        target: String,
        /// What was given.
        url: String,
    },
    /// A key that cannot be sent in a header.
    #[error("the key of target {target} is empty or has characters that no key has")]
    BadKey {
        /// Which target.
        target: String,
    },
    /// No request to probe a target with.
    #[error("no probe can be made")]
    Probe(#[source] BoxError),
    /// No TLS.
    #[error("TLS could not be set up")]
    Tls(#[from] rustls::Error),
}

/// A request that is no chat request.
#[derive(Debug, thiserror::Error)]
#[error("the body must be a JSON object")]
pub(super) struct NotAChat;
