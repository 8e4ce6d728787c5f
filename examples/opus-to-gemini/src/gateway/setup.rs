//! What can be wrong with a gateway before its first call.

use std::io;

use tower_spillway_core::InvalidConfig;

use crate::pipeline::BuildError;

/// A gateway that cannot be built, or a file that cannot be taken in. Never shows a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// Its targets.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A price that is none.
    #[error(transparent)]
    Price(#[from] InvalidConfig),
    /// Keys of callers are to be asked for, and there are none.
    #[error("there are no keys of callers in {0}")]
    NoKeys(String),
    /// The file of callers' keys.
    #[error("{path} cannot be read")]
    KeysFile {
        /// Its path.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}
