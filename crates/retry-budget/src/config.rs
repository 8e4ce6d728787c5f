//! How a ratio budget is set up.

use std::time::Duration;

use tower_spillway_core::InvalidConfig;

use crate::{
    RatioBudget, Weights,
    cell::{TOKEN, ratio::Rules},
    clock::nanos,
    weights::micro,
};

/// How much retries may add to the traffic, and what is always allowed.
///
/// | setting | default | bound |
/// |---|---|---|
/// | [`ratio`](Self::ratio) | 0.2 | from 0 to 1000 |
/// | [`floor_per_second`](Self::floor_per_second) | 1 | from 0 to 10,000 |
/// | [`ttl`](Self::ttl) | 10 s | from 1 s to 60 s |
/// | [`reserve`](Self::reserve) | floor × ttl | any |
/// | [`weights`](Self::weights) | [`Weights::EQUAL`] | from 0.001 to 1000 each |
///
/// Values are checked by [`build`](Self::build). A budget that is not valid is an error, never one
/// without a limit.
///
/// The shape is Finagle's and linkerd's; so are the bounds of ratio and ttl. Their floor of 10 each
/// second is 100 free retries, too many for calls to language models; ours is 1.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct RatioConfig {
    ratio: f64,
    floor_per_second: f64,
    ttl: Duration,
    reserve: Option<u32>,
    weights: Weights,
}

impl Default for RatioConfig {
    fn default() -> Self {
        Self {
            ratio: 0.2,
            floor_per_second: 1.0,
            ttl: Duration::from_secs(10),
            reserve: None,
            weights: Weights::EQUAL,
        }
    }
}

impl RatioConfig {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Retries for each first attempt: with 0.2 every fifth call may be sent once more. Counted in
    /// millionths.
    pub fn ratio(mut self, retries: f64) -> Self {
        self.ratio = retries;
        self
    }

    /// Retries each second that are allowed without any traffic. Counted in millionths.
    pub fn floor_per_second(mut self, retries: f64) -> Self {
        self.floor_per_second = retries;
        self
    }

    /// How long a first attempt counts, and how long a retry does.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Retries that are allowed within one ttl without any traffic, in place of the floor.
    pub fn reserve(mut self, retries: u32) -> Self {
        self.reserve = Some(retries);
        self
    }

    /// What a retry takes, by what led to it. One that takes less than a token makes more retries
    /// than [`ratio`](Self::ratio) says.
    pub fn weights(mut self, weights: Weights) -> Self {
        self.weights = weights;
        self
    }

    /// A budget of its own.
    ///
    /// # Errors
    ///
    /// [`InvalidConfig`] names the setting that is out of its bounds.
    pub fn build(self) -> Result<RatioBudget, InvalidConfig> {
        Ok(RatioBudget::of(self.check()?))
    }

    pub(crate) fn check(self) -> Result<Rules, InvalidConfig> {
        // Written so that NaN fails.
        if !(0.0..=1000.0).contains(&self.ratio) {
            return Err(InvalidConfig::new("ratio", "from 0 to 1000"));
        }
        let deposit = micro(self.ratio);
        if deposit == 0 && self.ratio > 0.0 {
            return Err(InvalidConfig::new("ratio", "0, or at least 0.000001"));
        }
        if !(0.0..=10_000.0).contains(&self.floor_per_second) {
            return Err(InvalidConfig::new("floor_per_second", "from 0 to 10,000"));
        }
        if !(Duration::from_secs(1)..=Duration::from_secs(60)).contains(&self.ttl) {
            return Err(InvalidConfig::new("ttl", "from 1 s to 60 s"));
        }
        let ttl = nanos(self.ttl);
        let reserve = match self.reserve {
            Some(retries) => u64::from(retries) * TOKEN,
            None => {
                // At most 10^10 * 6 * 10^10, which an u64 does not hold.
                let scaled = u128::from(micro(self.floor_per_second)) * u128::from(ttl);
                u64::try_from(scaled / 1_000_000_000).unwrap_or(u64::MAX)
            }
        };
        Ok(Rules {
            deposit,
            reserve,
            ttl,
            prices: self.weights.prices()?,
        })
    }
}

#[cfg(test)]
#[cfg(not(spillway_loom))]
mod tests {
    use super::*;

    #[test]
    fn the_defaults() {
        let rules = RatioConfig::new().check().unwrap();
        assert_eq!(rules.deposit, 200_000);
        assert_eq!(rules.reserve, 10 * TOKEN);
        assert_eq!(rules.ttl, 10_000_000_000);
    }

    #[test]
    fn what_is_set_is_used() {
        let config = RatioConfig::new()
            .ratio(0.75)
            .floor_per_second(0.5)
            .ttl(Duration::from_secs(60));
        let rules = config.check().unwrap();
        assert_eq!((rules.deposit, rules.reserve), (750_000, 30 * TOKEN));
        let rules = config.reserve(3).check().unwrap();
        assert_eq!(rules.reserve, 3 * TOKEN);
        let largest = config.ratio(1000.0).floor_per_second(10_000.0);
        assert_eq!(largest.check().unwrap().reserve, 600_000 * TOKEN);
    }

    /// Row 35: nonsense is named, and never taken for "no limit".
    #[test]
    fn each_bound_is_checked_and_named() {
        let refused = |config: RatioConfig| config.build().unwrap_err().what();
        let config = RatioConfig::new;
        for wrong in [f64::NAN, f64::INFINITY, -1.0, -f64::MIN_POSITIVE] {
            assert_eq!(refused(config().ratio(wrong)), "ratio");
            assert_eq!(
                refused(config().floor_per_second(wrong)),
                "floor_per_second"
            );
        }
        assert_eq!(refused(config().ratio(1000.1)), "ratio");
        assert_eq!(refused(config().ratio(1e-9)), "ratio");
        assert_eq!(refused(config().floor_per_second(1e5)), "floor_per_second");
        for ttl in [0, 999, 60_001, 1_000_000] {
            assert_eq!(refused(config().ttl(Duration::from_millis(ttl))), "ttl");
        }
    }

    #[test]
    fn nothing_at_all_is_a_budget_too() {
        let budget = RatioConfig::new().ratio(0.0).floor_per_second(0.0).build();
        assert_eq!(budget.unwrap().balance(), 0);
    }
}
