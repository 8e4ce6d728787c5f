//! The tables of a file.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use tower_spillway_llm::Vendor;

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
    /// Reading of vendors' answers.
    pub verdict: Verdict,
    /// Calls at a target at one time.
    pub in_flight: InFlight,
    /// The time limit of each attempt; the limits are the targets' own.
    pub attempt_timeout: Timeout,
    /// Connections.
    pub pool: Pool,
    /// The queue of `batch`.
    pub batch: Batch,
    /// What tokens cost.
    pub prices: Prices,
    /// Who can be asked, by name.
    pub targets: BTreeMap<String, Target>,
    /// Who is asked in which order, by name. A pipeline is made of one: `default`, unless another
    /// is asked for.
    pub chains: BTreeMap<String, Vec<String>>,
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
    /// To the head of a stream.
    #[serde(with = "super::duration::or_none")]
    pub streaming_deadline: Option<Duration>,
}

macro_rules! kind {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $text)] $variant),+
        }

        impl $name {
            /// Its name in a file.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text),+
                }
            }
        }
    };
}

kind! {
    /// Where idempotency keys come from.
    IdempotencyKeyKind {
        /// Drawn at random, unless the caller brings one.
        #[default]
        Random = "random",
    }
}

/// One key per call, the same on every attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IdempotencyKey {
    /// Whether calls get one.
    pub enabled: bool,
    /// Where it comes from.
    pub kind: IdempotencyKeyKind,
}

kind! {
    /// How retries are bounded.
    BudgetKind {
        /// A share of all calls.
        #[default]
        Ratio = "ratio",
    }
}

/// What all retries together may add.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Whether retries are bounded at all.
    pub enabled: bool,
    /// How.
    pub kind: BudgetKind,
    /// Retries for each hundred calls, over all targets.
    pub percent: u32,
    /// Retries that are allowed within [`ttl`](Self::ttl) whatever the traffic.
    pub reserve: u32,
    /// How long a call and a retry count, from 1 s to 60 s.
    #[serde(with = "super::duration")]
    pub ttl: Duration,
}

kind! {
    /// How the next target is chosen.
    FailoverKind {
        /// The next one of the chain.
        #[default]
        Ordered = "ordered",
    }
}

/// When a call goes on to the next target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Failover {
    /// Whether it does at all; else the first target of the chain is the only one.
    pub enabled: bool,
    /// How the next one is chosen.
    pub kind: FailoverKind,
    /// Sends on a target while a later one is usable, the first included.
    pub sends_while_others: u32,
    /// Sends on the last target, the first included.
    pub sends: u32,
    /// The longest wait on a target while a later one is usable.
    #[serde(with = "super::duration")]
    pub patience: Duration,
    /// How long a target may take to have room for a call.
    #[serde(with = "super::duration")]
    pub ready_within: Duration,
}

kind! {
    /// How waits grow.
    BackoffKind {
        /// They double.
        #[default]
        Exponential = "exponential",
        /// They do not.
        Constant = "constant",
    }
}

/// Waits that grow, each drawn from nothing to its ceiling.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Backoff {
    /// Whether failures without a hint are retried at all.
    pub enabled: bool,
    /// How they grow.
    pub kind: BackoffKind,
    /// The first ceiling.
    #[serde(with = "super::duration")]
    pub base: Duration,
    /// The highest ceiling.
    #[serde(with = "super::duration")]
    pub cap: Duration,
    /// The most that all waits on a target may add up to.
    #[serde(with = "super::duration::or_none")]
    pub max_total_wait: Option<Duration>,
}

kind! {
    /// How a server's hint is taken.
    RetryAfterKind {
        /// One hint holds all calls to the target.
        #[default]
        Shared = "shared",
        /// Each call waits for itself.
        PerCall = "per_call",
    }
}

/// Waits that a server asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryAfter {
    /// Whether they are waited out at all.
    pub enabled: bool,
    /// How.
    pub kind: RetryAfterKind,
    /// The longest wait that a server may ask for.
    #[serde(with = "super::duration")]
    pub longest_wait: Duration,
    /// The longest time that one hint holds a target, where it holds all calls.
    #[serde(with = "super::duration")]
    pub max_hold: Duration,
}

kind! {
    /// What opens a breaker.
    BreakerKind {
        /// Failures in a row.
        Consecutive = "consecutive",
        /// Failures in a row, or so many of the last calls.
        #[default]
        ConsecutiveOrOfLast = "consecutive_or_of_last",
    }
}

kind! {
    /// Whose calls find out whether a target is back.
    Probes {
        /// Small ones of the pipeline's own, so that no user waits for one; where they are
        /// spawned, see [`Pipeline::probes`](crate::pipeline::Pipeline::probes).
        #[default]
        Own = "own",
        /// Those of users.
        Users = "users",
    }
}

/// A target's breaker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Breaker {
    /// Whether there is one.
    pub enabled: bool,
    /// What opens it.
    pub kind: BreakerKind,
    /// So many failures in a row.
    pub failures: u32,
    /// So many failures among the last [`of_last`](Self::of_last) calls.
    pub bad: u32,
    /// How many calls are looked back on.
    pub of_last: u32,
    /// None of them older than this.
    #[serde(with = "super::duration")]
    pub within: Duration,
    /// How long it stays open the first time.
    #[serde(with = "super::duration")]
    pub open: Duration,
    /// How long it stays open at most; it doubles each time that probes fail.
    #[serde(with = "super::duration")]
    pub max_open: Duration,
    /// So many probes in a row close it.
    pub close_after: u32,
    /// For so long after that only a rising share of calls is admitted; `"0s"` for none.
    #[serde(with = "super::duration")]
    pub ramp: Duration,
    /// Whose calls find out whether the target is back.
    pub probes: Probes,
    /// How often one of the pipeline's own does.
    #[serde(with = "super::duration")]
    pub probe_every: Duration,
    /// An attempt that the deadline cuts off counts as a failure once it took this long.
    #[serde(with = "super::duration")]
    pub abandoned_after: Duration,
}

kind! {
    /// How answers are read.
    VerdictKind {
        /// By the tables of the target's vendor.
        #[default]
        Vendor = "vendor",
    }
}

/// Reading of vendors' answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Verdict {
    /// Whether bodies are read; else the status alone decides.
    pub enabled: bool,
    /// How.
    pub kind: VerdictKind,
}

kind! {
    /// What a call does that finds no room.
    InFlightKind {
        /// It waits, at most as long as a target may take to be ready, then goes on.
        #[default]
        Wait = "wait",
    }
}

/// Calls at a target at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InFlight {
    /// Whether they are bounded; how far, the targets say.
    pub enabled: bool,
    /// What a call does that finds no room.
    pub kind: InFlightKind,
}

kind! {
    /// What the limit of an attempt is measured to.
    TimeoutKind {
        /// To the last byte of a plain answer, to the head of a stream.
        #[default]
        Whole = "whole_answer",
    }
}

/// The time limit of each attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeout {
    /// Whether attempts are limited.
    pub enabled: bool,
    /// What the limit is measured to.
    pub kind: TimeoutKind,
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
    /// The address of its chat endpoint: `https`, or `http` on this machine.
    pub url: String,
    /// The model that is asked for, whatever the caller named.
    pub model: String,
    /// The variable that holds its key.
    pub key_env: String,
    /// The limit of an attempt to the last byte of a plain answer.
    #[serde(with = "super::duration")]
    pub plain_within: Duration,
    /// The limit of an attempt to the head of a stream.
    #[serde(with = "super::duration")]
    pub streaming_within: Duration,
    /// The longest answer where a request names none, in tokens; 0 leaves it to the vendor.
    pub max_tokens: u64,
    /// The longest answer that may be asked for, in tokens; 0 leaves it to the vendor.
    pub max_tokens_cap: u64,
    /// Calls at one time.
    pub in_flight: u32,
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
            plain_within: Duration::from_secs(60),
            streaming_within: Duration::from_secs(8),
            max_tokens: 0,
            max_tokens_cap: 0,
            in_flight: 50,
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
