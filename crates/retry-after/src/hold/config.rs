use std::time::Duration;

use tower_spillway_core::InvalidConfig;

/// How long one answer may hold everybody. Checked where the hold is made.
///
/// | setting | default | bound |
/// |---|---|---|
/// | [`max_hold`](Self::max_hold) | 5 min | more than 0 |
/// | [`without_hint`](Self::without_hint) | no hold | more than 0 |
/// | [`most_keys`](Self::most_keys) | 1024 | at least 1 |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldConfig {
    pub(super) max_hold: Duration,
    pub(super) without_hint: Option<Duration>,
    pub(super) most_keys: usize,
}

impl Default for HoldConfig {
    fn default() -> Self {
        Self {
            max_hold: Duration::from_secs(5 * 60),
            without_hint: None,
            most_keys: 1024,
        }
    }
}

impl HoldConfig {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The longest hold. What a server asks beyond it is cut to it for the hold, never dropped: a
    /// call that comes then is a question whether it is over, and its answer holds again.
    #[must_use]
    pub fn max_hold(mut self, most: Duration) -> Self {
        self.max_hold = most;
        self
    }

    /// How long a throttled answer that names no wait holds.
    #[must_use]
    pub fn without_hint(mut self, wait: Duration) -> Self {
        self.without_hint = Some(wait);
        self
    }

    /// So many keys have a hold of their own; when all of them are held, the others share one.
    #[must_use]
    pub fn most_keys(mut self, most: usize) -> Self {
        self.most_keys = most;
        self
    }

    pub(super) fn check(self) -> Result<Self, InvalidConfig> {
        if self.max_hold.is_zero() {
            return Err(InvalidConfig::new("max_hold", "more than 0"));
        }
        if self.without_hint.is_some_and(|wait| wait.is_zero()) {
            return Err(InvalidConfig::new("without_hint", "more than 0"));
        }
        if self.most_keys == 0 {
            return Err(InvalidConfig::new("most_keys", "at least 1"));
        }
        Ok(self)
    }
}
