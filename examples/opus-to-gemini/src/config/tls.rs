//! The table of whom to trust.

use serde::{Deserialize, Serialize};

use super::kind::kind;

kind! {
    /// Whose certificates are believed.
    Roots {
        /// Mozilla's list, as it is in the binary.
        #[default]
        Bundled = "bundled",
        /// The list of this machine.
        System = "system",
    }
}

/// Whose certificates targets may show.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// The list.
    pub roots: Roots,
    /// A file of certificates in PEM that are believed besides; empty for none.
    pub ca_file: String,
}
