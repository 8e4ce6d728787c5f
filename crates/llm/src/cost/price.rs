use std::{collections::HashMap, fmt, iter::Sum, ops::Add};

use tower_spillway_core::InvalidConfig;

use super::Usage;

/// Prices of one model, in dollars per million tokens, exact to the millionth of a dollar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    // Micro-dollars per million tokens: pico-dollars per token.
    input: u64,
    cached: u64,
    output: u64,
}

impl Price {
    /// Dollars per million tokens as decimals, for instance `("1.25", "10")`. Tokens from a cache
    /// cost as much as others until [`cached`](Self::cached) says less.
    ///
    /// # Errors
    ///
    /// A price has digits and at most six decimals, and is below a billion dollars.
    pub fn per_million(input: &str, output: &str) -> Result<Self, InvalidConfig> {
        let input = micros(input)?;
        Ok(Self {
            input,
            cached: input,
            output: micros(output)?,
        })
    }

    /// Dollars per million tokens that were read from a cache.
    ///
    /// # Errors
    ///
    /// As [`per_million`](Self::per_million).
    pub fn cached(mut self, cached: &str) -> Result<Self, InvalidConfig> {
        self.cached = micros(cached)?;
        Ok(self)
    }

    /// What this usage costs.
    pub fn cost(&self, usage: &Usage) -> Cost {
        let part = |tokens: u64, price: u64| u128::from(tokens) * u128::from(price);
        let cached = usage.cached.min(usage.input);
        Cost {
            pico: part(usage.input - cached, self.input)
                .saturating_add(part(cached, self.cached))
                .saturating_add(part(usage.output, self.output)),
        }
    }
}

/// A decimal in millionths.
fn micros(text: &str) -> Result<u64, InvalidConfig> {
    let wrong = InvalidConfig::new("price", "dollars as a decimal with at most six places");
    let (whole, fraction) = match text.split_once('.') {
        Some((_, "")) => return Err(wrong),
        Some(parts) => parts,
        None => (text, ""),
    };
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty()
        || whole.len() > 9
        || fraction.len() > 6
        || !digits(whole)
        || !digits(fraction)
    {
        return Err(wrong);
    }
    format!("{whole}{fraction:0<6}").parse().map_err(|_| wrong)
}

/// An amount of money, exact to 10⁻¹² dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost {
    pico: u128,
}

impl Cost {
    /// In 10⁻¹² dollar.
    pub fn pico_dollars(self) -> u128 {
        self.pico
    }

    /// In 10⁻⁹ dollar, rounded down.
    pub fn nano_dollars(self) -> u128 {
        self.pico / 1_000
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            pico: self.pico.saturating_add(other.pico),
        }
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::add)
    }
}

impl fmt::Display for Cost {
    /// Dollars with as many decimals as it has; `{:.4}` rounds half up.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DOLLAR: u128 = 1_000_000_000_000;
        let Some(places) = f.precision().filter(|places| *places < 12) else {
            let fraction = format!("{:012}", self.pico % DOLLAR);
            let fraction = fraction.trim_end_matches('0');
            let point = if fraction.is_empty() { "" } else { "." };
            return write!(f, "${}{point}{fraction}", self.pico / DOLLAR);
        };
        let unit = 10u128.pow(12 - u32::try_from(places).unwrap_or(0));
        let rounded = self.pico.saturating_add(unit / 2) / unit;
        let per_dollar = DOLLAR / unit;
        match places {
            0 => write!(f, "${rounded}"),
            _ => write!(
                f,
                "${}.{:0places$}",
                rounded / per_dollar,
                rounded % per_dollar
            ),
        }
    }
}

/// Prices of models, and the day that they are of.
#[derive(Clone, Debug)]
pub struct PriceTable {
    date: String,
    prices: HashMap<String, Price>,
}

impl PriceTable {
    /// An empty table of this day, for instance `"2026-09-01"`.
    ///
    /// # Errors
    ///
    /// A date is year, month and day, as ISO 8601 writes them.
    pub fn new(date: impl Into<String>) -> Result<Self, InvalidConfig> {
        let date = date.into();
        match is_date(&date) {
            true => Ok(Self {
                date,
                prices: HashMap::new(),
            }),
            false => Err(InvalidConfig::new("price date", "YYYY-MM-DD")),
        }
    }

    /// Sets the prices of a model.
    #[must_use]
    pub fn with(mut self, model: impl Into<String>, price: Price) -> Self {
        self.prices.insert(model.into(), price);
        self
    }

    /// The day.
    pub fn date(&self) -> &str {
        &self.date
    }

    /// The prices of a model.
    pub fn price(&self, model: &str) -> Option<Price> {
        self.prices.get(model).copied()
    }

    /// What this usage of a model costs; `None` if its prices are not known.
    pub fn cost(&self, model: &str, usage: &Usage) -> Option<Cost> {
        self.price(model).map(|price| price.cost(usage))
    }
}

fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut part = |digits: usize, range: std::ops::RangeInclusive<u32>| {
        parts.next().is_some_and(|p| {
            let plain = p.len() == digits && p.bytes().all(|b| b.is_ascii_digit());
            plain && p.parse().is_ok_and(|n| range.contains(&n))
        })
    };
    let date = part(4, 0..=9999) && part(2, 1..=12) && part(2, 1..=31);
    date && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prices_are_exact() {
        let price = Price::per_million("0.0375", "0.15").unwrap();
        let usage = Usage {
            input: 1,
            cached: 0,
            output: 1,
        };
        assert_eq!(price.cost(&usage).pico_dollars(), 37_500 + 150_000);
        for wrong in [
            "",
            ".5",
            "1.",
            "1.0000001",
            "-1",
            "1e3",
            "$1",
            "1000000000",
            "1,5",
        ] {
            let error = Price::per_million(wrong, "1").unwrap_err();
            assert_eq!(error.what(), "price", "{wrong}");
        }
    }

    #[test]
    fn costs_are_printed_exactly_or_rounded() {
        let cost = |pico| Cost { pico };
        assert_eq!(cost(0).to_string(), "$0");
        assert_eq!(cost(37_500).to_string(), "$0.0000000375");
        assert_eq!(cost(2_000_000_000_000).to_string(), "$2");
        assert_eq!(format!("{:.2}", cost(1_995_000_000_000)), "$2.00");
        assert_eq!(format!("{:.4}", cost(123_449_999_999)), "$0.1234");
        assert_eq!(format!("{:.0}", cost(1_500_000_000_000)), "$2");
        assert_eq!(format!("{:.20}", cost(1)), "$0.000000000001");
    }

    #[test]
    fn the_largest_figures_saturate() {
        let price = Price::per_million("999999999", "999999999").unwrap();
        let usage = Usage {
            input: u64::MAX,
            cached: 0,
            output: u64::MAX,
        };
        let most = price.cost(&usage);
        assert!(most + most >= most);
    }

    #[test]
    fn dates() {
        assert!(PriceTable::new("2026-09-01").is_ok());
        for wrong in [
            "2026-13-01",
            "2026-9-1",
            "09/01/2026",
            "2026-09-01-1",
            "",
            "２026-09-01",
        ] {
            let error = PriceTable::new(wrong).unwrap_err();
            assert_eq!(error.what(), "price date", "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn the_cost_of_a_sum_is_the_sum_of_the_costs(a in 0u64..1 << 40, b in 0u64..1 << 40) {
            let price = Price::per_million("1.25", "10").unwrap().cached("0.31").unwrap();
            let usage = |n: u64| Usage { input: n, cached: n / 3, output: n / 7 };
            let sum = price.cost(&(usage(a) + usage(b)));
            prop_assert_eq!(sum, price.cost(&usage(a)) + price.cost(&usage(b)));
        }
    }
}
