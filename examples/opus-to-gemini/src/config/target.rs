//! The table of a target.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use tower_spillway_llm::Vendor;

use super::{Breaker, HeaderFrom, kind::kind};

kind! {
    /// Which requests an endpoint takes: what is dropped and rewritten for it.
    Takes {
        /// As Claude Opus at Anthropic's OpenAI-compatible endpoint does.
        Anthropic = "anthropic",
        /// As Gemini's OpenAI-compatible endpoint does.
        Gemini = "gemini",
        /// All that OpenAI does.
        #[default]
        OpenAi = "openai",
    }
}

/// Somebody who can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Target {
    /// Whose answers they are: which tables read them.
    #[serde(with = "vendor")]
    pub vendor: Vendor,
    /// Which requests it takes.
    pub takes: Takes,
    /// The address of its chat endpoint: `https`, or `http` on this machine or where no
    /// key is sent.
    pub url: String,
    /// The model that is asked for, whatever the caller named.
    pub model: String,
    /// The variable that holds its key. Empty: [`key_file`](Self::key_file) does, or it asks for
    /// none.
    pub key_env: String,
    /// The file that holds its key, if no variable does; read at the start and when the
    /// configuration is read again.
    pub key_file: String,
    /// The header that its key is sent in.
    pub auth_header: String,
    /// What stands before the key in it; empty for nothing.
    pub auth_scheme: String,
    /// Further headers of its requests.
    pub headers: BTreeMap<String, HeaderFrom>,
    /// Parameters that its address ends with.
    pub query: BTreeMap<String, String>,
    /// The limit of an attempt to the last byte of a plain answer.
    #[serde(with = "super::duration")]
    pub plain_within: Duration,
    /// The limit of an attempt to the first content of a stream.
    #[serde(with = "super::duration")]
    pub streaming_within: Duration,
    /// The longest answer where a request names none, in tokens; 0 leaves it to the vendor.
    pub max_tokens: u64,
    /// The longest answer that may be asked for, in tokens; 0 leaves it to the vendor.
    pub max_tokens_cap: u64,
    /// How many tokens fit, prompt and answer together: what is too long for one target goes to a
    /// later one where more fits. 0: what is known of the endpoint.
    pub context: u64,
    /// Calls at one time.
    pub in_flight: u32,
    /// Whether it is asked at all. Else it drains: what is under way there ends, nothing is begun.
    pub enabled: bool,
    /// Figures of its own; else those of `[breaker]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker: Option<Breaker>,
}

impl Default for Target {
    fn default() -> Self {
        Self {
            vendor: Vendor::OpenAi,
            takes: Takes::OpenAi,
            url: String::new(),
            model: String::new(),
            key_env: String::new(),
            key_file: String::new(),
            auth_header: "authorization".into(),
            auth_scheme: "Bearer".into(),
            headers: BTreeMap::new(),
            query: BTreeMap::new(),
            plain_within: Duration::from_secs(60),
            streaming_within: Duration::from_secs(8),
            max_tokens: 0,
            max_tokens_cap: 0,
            context: 0,
            in_flight: 50,
            enabled: true,
            breaker: None,
        }
    }
}

mod vendor {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use tower_spillway_llm::Vendor;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(super) fn serialize<S: Serializer>(vendor: &Vendor, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(vendor.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vendor, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl Target {
    /// Whether it is sent what nobody on the way may read.
    pub(crate) fn sends_a_secret(&self) -> bool {
        let of_headers = |from: &HeaderFrom| !matches!(from, HeaderFrom::Text(_));
        !self.key_env.is_empty()
            || !self.key_file.is_empty()
            || self.headers.values().any(of_headers)
    }
}
