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
    /// A file that holds no key.
    #[error("{path}, which holds a secret of target {target}, cannot be read: {reason}")]
    KeyFile {
        /// Which target.
        target: String,
        /// The file.
        path: String,
        /// Why not.
        reason: String,
    },
    /// A header that cannot be sent.
    #[error("the header {header} of target {target} has no value that can be sent")]
    BadHeader {
        /// Which target.
        target: String,
        /// Its name.
        header: String,
    },
    /// A file of certificates that has none.
    #[error("{path} cannot be read as certificates in PEM: {reason}")]
    BadCaFile {
        /// The file.
        path: String,
        /// Why not.
        reason: String,
    },
    /// This machine has no list of whom to trust.
    #[error("no certificates were found on this machine: roots = \"bundled\" needs none")]
    NoRoots,
    /// More than one thing is wrong.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Several(Vec<Self>),
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
    #[error(
        "the address of target {target} must be https, or http on this machine or without a key: {url}"
    )]
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

impl BuildError {
    /// One of several; `None` of none.
    pub(super) fn all(mut errors: Vec<Self>) -> Option<Self> {
        match errors.len() {
            0 | 1 => errors.pop(),
            _ => Some(Self::Several(errors)),
        }
    }
}

/// A request that is no chat request.
#[derive(Debug, thiserror::Error)]
#[error("the body must be a JSON object")]
pub(super) struct NotAChat;
