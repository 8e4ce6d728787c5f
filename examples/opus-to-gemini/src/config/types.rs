//! The tables of a file.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    Backoff, Breaker, Budget, Failover, Gateway, IdempotencyKey, InFlight, RetryAfter, Route,
    Stream, Target, Timeout, Tls, Verdict,
};

/// All that a file can set. See the [module docs](super).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// Where everything comes from that the file does not say.
    pub profile: Profile,
    /// Deadlines of a whole call.
    pub call: Call,
    /// One key per call, the same on every attempt.
    pub idempotency_key: IdempotencyKey,
    /// What all retries together may add.
    pub budget: Budget,
    /// When a call goes on to the next target.
    pub failover: Failover,
    /// Waits that grow.
    pub backoff: Backoff,
    /// Waits that a server asks for.
    pub retry_after: RetryAfter,
    /// A target's breaker; a target may have figures of its own.
    pub breaker: Breaker,
    /// Streams, held and checked.
    pub stream: Stream,
    /// Reading of vendors' answers.
    pub verdict: Verdict,
    /// Calls at a target at one time.
    pub in_flight: InFlight,
    /// The time limit of each attempt; the limits are the targets' own.
    pub attempt_timeout: Timeout,
    /// Connections.
    pub pool: Pool,
    /// Whose certificates targets may show.
    pub tls: Tls,
    /// The queue of `batch`.
    pub batch: Batch,
    /// The server.
    pub gateway: Gateway,
    /// What tokens cost.
    pub prices: Prices,
    /// Who can be asked, by name.
    pub targets: BTreeMap<String, Target>,
    /// Who is asked in which order, by name: targets, or chains that stand for all of theirs. A
    /// pipeline is made of one: `default`, unless another is asked for.
    pub chains: BTreeMap<String, Vec<String>>,
    /// Where calls for a model go, by its name or a pattern (`*` for any characters, `?` for one).
    /// See [`Fleet::route`](crate::pipeline::Fleet::route).
    pub routes: BTreeMap<String, Route>,
}

/// A set of figures for one use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// Somebody waits: chat, servers, the demo.
    #[default]
    Interactive,
    /// Nobody waits: a queue that must be worked off.
    Batch,
}

impl Profile {
    /// Its name in a file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Batch => "batch",
        }
    }
}

/// Deadlines of a whole call, over all attempts and waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Call {
    /// To the last byte of a plain answer.
    #[serde(with = "super::duration::or_none")]
    pub plain_deadline: Option<Duration>,
    /// To the first content of a stream. One that is held until it is complete has the plain one.
    #[serde(with = "super::duration::or_none")]
    pub streaming_deadline: Option<Duration>,
}

/// Connections, for each target its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pool {
    /// Open at one time.
    pub connections: u32,
    /// Kept while idle.
    pub idle: u32,
    /// How long an idle one is kept.
    #[serde(with = "super::duration")]
    pub idle_timeout: Duration,
    /// To be connected, TLS not included.
    #[serde(with = "super::duration")]
    pub connect: Duration,
    /// Between two pieces of an answer.
    #[serde(with = "super::duration")]
    pub read_idle: Duration,
    /// For the network to take a piece of a request.
    #[serde(with = "super::duration")]
    pub write: Duration,
    /// How often a quiet HTTP/2 connection is asked whether it lives.
    #[serde(with = "super::duration")]
    pub keep_alive: Duration,
    /// How long it may take to say so.
    #[serde(with = "super::duration")]
    pub keep_alive_timeout: Duration,
}

/// The queue of `batch`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Batch {
    /// Items under way at one time.
    pub concurrency: u32,
    /// How often one item goes back into the queue.
    pub max_requeues: u32,
    /// The first ceiling of the delay of an item that goes back; it doubles each time.
    #[serde(with = "super::duration")]
    pub requeue_base: Duration,
    /// The highest ceiling.
    #[serde(with = "super::duration")]
    pub requeue_cap: Duration,
    /// Items go back until then, instead of so often.
    #[serde(with = "super::duration::or_none")]
    pub give_up_after: Option<Duration>,
}

/// What tokens cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prices {
    /// The day that they are of, as `2026-09-01`.
    pub date: String,
    /// By model.
    pub models: BTreeMap<String, PriceOf>,
}

/// What a million tokens cost, in US dollars, as decimals in quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PriceOf {
    /// Of the prompt.
    pub input: String,
    /// Of the prompt, from a cache; as much as others where it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<String>,
    /// Of the answer.
    pub output: String,
}
