//! The figures of a stack.

use std::time::Duration;

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// The figures of all policies that are not a target's own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Figures {
    /// A plain call must be answered within this, over all attempts and waits.
    pub plain_deadline: Duration,
    /// A streaming call must have its response head within this.
    pub streaming_deadline: Duration,
    /// Sends on a target while a later one is usable, the first included.
    pub sends_while_others: u32,
    /// Sends on the last target, the first included.
    pub sends: u32,
    /// The longest wait on a target while a later one is usable.
    pub patience: Duration,
    /// The first ceiling of the backoff; it doubles with each retry.
    pub backoff_base: Duration,
    /// The highest ceiling of the backoff.
    pub backoff_cap: Duration,
    /// The longest wait that a server may ask for.
    pub longest_hint: Duration,
    /// So many failures in a row open a target's breaker.
    pub breaker_failures: u32,
    /// How long it stays open the first time; it grows to six times that.
    pub breaker_open: Duration,
    /// Retries for each hundred calls, over all targets.
    pub retry_percent: u32,
    /// Retries that are allowed within [`retry_ttl`](Self::retry_ttl) whatever the traffic.
    pub retry_reserve: u32,
    /// How long a call and a retry count, from 1 s to 60 s.
    pub retry_ttl: Duration,
}

impl Figures {
    /// For people who wait: chat, servers.
    pub fn interactive() -> Self {
        Self {
            plain_deadline: secs(180),
            streaming_deadline: secs(60),
            sends_while_others: 2,
            sends: 4,
            patience: secs(1),
            backoff_base: Duration::from_millis(250),
            backoff_cap: secs(8),
            longest_hint: secs(60),
            breaker_failures: 3,
            breaker_open: secs(10),
            retry_percent: 20,
            retry_reserve: 10,
            retry_ttl: secs(10),
        }
    }

    /// All durations divided by `speed`, to play an incident faster. At 0 nothing is divided.
    #[must_use]
    pub fn at_speed(self, speed: u32) -> Self {
        let by = speed.max(1);
        Self {
            plain_deadline: self.plain_deadline / by,
            streaming_deadline: self.streaming_deadline / by,
            patience: self.patience / by,
            backoff_base: self.backoff_base / by,
            backoff_cap: self.backoff_cap / by,
            longest_hint: self.longest_hint / by,
            breaker_open: self.breaker_open / by,
            // A budget counts in whole seconds at least.
            retry_ttl: (self.retry_ttl / by).max(secs(1)),
            ..self
        }
    }
}

impl Default for Figures {
    fn default() -> Self {
        Self::interactive()
    }
}
