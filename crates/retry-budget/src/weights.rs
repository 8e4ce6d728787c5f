//! What a retry costs, by what led to it.

use tower_spillway_core::{
    Class, InvalidConfig,
    gate::{Ask, Kind},
};

use crate::cell::{Charge, Prices};

/// What a retry costs, by what led to it: in tokens, counted in millionths.
///
/// | kind | asked for | [`EQUAL`](Self::EQUAL) | [`AWS`](Self::AWS) | [`AWS_BEFORE_2026`](Self::AWS_BEFORE_2026) |
/// |---|---|---|---|---|
/// | throttled | after an answer that asks for fewer requests | 1 | 5 | 5 |
/// | transient | after a failure | 1 | 14 | 5 |
/// | timed out | after a time limit that ran out | 1 | 14 | 10 |
/// | hedge | while another attempt is out | 1 | 14 | 5 |
///
/// Equal is the default of [`RatioConfig`](crate::RatioConfig): AWS has reversed itself on which is
/// the dearer. The AWS SDKs do not hedge; a hedge costs there what a transient failure does.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Weights {
    throttled: f64,
    transient: f64,
    timed_out: f64,
    hedge: f64,
}

impl Weights {
    /// One token each.
    pub const EQUAL: Self = Self::each(1.0);

    /// The AWS SDKs from 2026 on.
    pub const AWS: Self = Self {
        throttled: 5.0,
        ..Self::each(14.0)
    };

    /// The AWS SDKs before.
    pub const AWS_BEFORE_2026: Self = Self {
        timed_out: 10.0,
        ..Self::each(5.0)
    };

    /// The same for all.
    pub const fn each(tokens: f64) -> Self {
        Self {
            throttled: tokens,
            transient: tokens,
            timed_out: tokens,
            hedge: tokens,
        }
    }

    /// After an answer that asks for fewer requests.
    pub const fn throttled(mut self, tokens: f64) -> Self {
        self.throttled = tokens;
        self
    }

    /// After a failure.
    pub const fn transient(mut self, tokens: f64) -> Self {
        self.transient = tokens;
        self
    }

    /// After a time limit that ran out.
    pub const fn timed_out(mut self, tokens: f64) -> Self {
        self.timed_out = tokens;
        self
    }

    /// While another attempt is out.
    pub const fn hedge(mut self, tokens: f64) -> Self {
        self.hedge = tokens;
        self
    }

    /// In micro-tokens.
    pub(crate) fn prices(self) -> Result<Prices, InvalidConfig> {
        let price = |tokens: f64| match (0.001..=1000.0).contains(&tokens) {
            true => Ok(micro(tokens)),
            // A retry that costs nothing would be a budget without a limit.
            false => Err(InvalidConfig::new("weights", "from 0.001 to 1000 each")),
        };
        Ok(Prices {
            throttled: price(self.throttled)?,
            transient: price(self.transient)?,
            timed_out: price(self.timed_out)?,
            hedge: price(self.hedge)?,
        })
    }
}

/// Micro-tokens. The number is in bounds already, so that the cast neither cuts nor wraps.
pub(crate) fn micro(tokens: f64) -> u64 {
    (tokens * 1_000_000.0).round() as u64
}

pub(crate) fn charge(ask: &Ask) -> Charge {
    match ask.kind {
        Kind::Hedge => Charge::Hedge,
        _ if ask.timed_out => Charge::TimedOut,
        _ if ask.class == Class::Throttled => Charge::Throttled,
        _ => Charge::Transient,
    }
}

#[cfg(test)]
#[cfg(not(spillway_loom))]
mod tests {
    use tower_spillway_core::clock;

    use super::*;

    #[test]
    fn what_costs_nothing_or_is_no_number_is_refused() {
        for wrong in [0.0, -1.0, 0.0009, 1000.1, f64::NAN, f64::INFINITY] {
            for weights in [
                Weights::EQUAL.throttled(wrong),
                Weights::EQUAL.transient(wrong),
                Weights::EQUAL.timed_out(wrong),
                Weights::EQUAL.hedge(wrong),
            ] {
                assert_eq!(weights.prices().unwrap_err().what(), "weights");
            }
        }
        assert_eq!(Weights::EQUAL.prices(), Ok(Prices::EQUAL));
        assert_eq!(Weights::AWS.prices().unwrap().throttled, 5_000_000);
    }

    #[test]
    fn what_led_to_a_retry_is_what_it_is_charged_as() {
        let mut ask = Ask::retry(Class::Throttled, clock::now());
        assert_eq!(charge(&ask), Charge::Throttled);
        ask.class = Class::Transient;
        assert_eq!(charge(&ask), Charge::Transient);
        ask.timed_out = true;
        assert_eq!(charge(&ask), Charge::TimedOut);
        ask.kind = Kind::Hedge;
        assert_eq!(charge(&ask), Charge::Hedge);
    }
}
