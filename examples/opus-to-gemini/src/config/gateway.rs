//! The table of the server.

use std::{net::SocketAddr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, de::Error};

use super::kind::kind;

kind! {
    /// How a line of the log is written.
    LogFormat {
        /// For people.
        #[default]
        Text = "text",
        /// One object a line.
        Json = "json",
    }
}

/// What `serve` asks of its callers, and grants them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gateway {
    /// The address to listen on. Loopback, unless a file says otherwise.
    #[serde(deserialize_with = "listen")]
    pub listen: SocketAddr,
    /// The variable that holds the keys of callers, with commas or blanks between them. Empty:
    /// nobody is asked for one, unless [`inbound_keys_file`](Self::inbound_keys_file) is set.
    pub inbound_keys_env: String,
    /// A file that holds the keys of callers, one a line. Empty: there is none.
    pub inbound_keys_file: String,
    /// Whether a request may bring its own chain as `fallbacks`.
    pub allow_request_fallbacks: bool,
    /// The longest body of a request, in bytes.
    pub max_body: u64,
    /// Calls under way at one time, streams included.
    pub in_flight: u32,
    /// Calls that may wait for one of those to end.
    pub queue: u32,
    /// How long one may wait.
    #[serde(with = "super::duration")]
    pub queue_within: Duration,
    /// For a client to send the head of a request.
    #[serde(with = "super::duration")]
    pub read_header_within: Duration,
    /// For a client to send the body of a request.
    #[serde(with = "super::duration")]
    pub read_body_within: Duration,
    /// For a client to take [`write_least`](Self::write_least) bytes of its answers: time in which
    /// there is something to take and it takes nothing, added up. Beyond it, it is let go.
    #[serde(with = "super::duration")]
    pub write_within: Duration,
    /// The bytes for which [`write_within`](Self::write_within) starts anew.
    pub write_least: u64,
    /// For calls under way to end, once it is told to stop.
    #[serde(with = "super::duration")]
    pub shutdown_within: Duration,
    /// The shortest time that a request may give itself by header; a shorter one becomes this.
    #[serde(with = "super::duration")]
    pub min_timeout: Duration,
    /// The longest time that a request may give itself by header; a longer one becomes this.
    #[serde(with = "super::duration")]
    pub max_timeout: Duration,
    /// How the log is written.
    pub log: LogFormat,
    /// How many of the last calls `/status` shows.
    pub last_calls: u32,
}

fn listen<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = |_| {
        D::Error::custom(format_args!(
            "{text:?} must be an address and a port such as \"127.0.0.1:8080\""
        ))
    };
    text.parse().map_err(wrong)
}

impl Default for Gateway {
    fn default() -> Self {
        let secs = Duration::from_secs;
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            inbound_keys_env: String::new(),
            inbound_keys_file: String::new(),
            allow_request_fallbacks: false,
            max_body: 32 * 1024 * 1024,
            in_flight: 256,
            queue: 256,
            queue_within: secs(5),
            read_header_within: secs(10),
            read_body_within: secs(30),
            write_within: secs(30),
            write_least: 16 * 1024,
            shutdown_within: secs(30),
            min_timeout: secs(1),
            max_timeout: secs(600),
            log: LogFormat::Text,
            last_calls: 50,
        }
    }
}
