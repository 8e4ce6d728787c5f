//! Durations with units, as Go prints them.

use super::number::{self, MILLISECOND, SECOND};

/// Nanoseconds of a unit. Go has none above the hour; some gateways add the day.
fn unit(name: &str) -> Option<u128> {
    Some(match name {
        "ns" => 1,
        "us" => 1_000,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => 60 * SECOND,
        "h" => 3_600 * SECOND,
        "d" => 86_400 * SECOND,
        _ => return None,
    })
}

/// "20ms", "6m0s", "1h12m3.5s" in nanoseconds, saturating. Every number needs its unit.
pub(super) fn go(text: &str) -> Option<u128> {
    let mut rest = text;
    let mut total = 0u128;
    while !rest.is_empty() {
        let (figure, after) = split(rest, |b| b.is_ascii_digit() || b == b'.')?;
        let (name, after) = split(after, |b| b.is_ascii_alphabetic())?;
        total = total.saturating_add(number::decimal(figure, unit(name)?)?);
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

/// The longest start of `text` whose bytes are all `of` that kind, and the rest. Only ASCII kinds.
fn split(text: &str, of: impl Fn(u8) -> bool) -> Option<(&str, &str)> {
    let end = text.bytes().position(|b| !of(b)).unwrap_or(text.len());
    text.split_at_checked(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_unit_and_their_sums() {
        for (text, ms) in [
            ("20ms", 20),
            ("1s", 1_000),
            ("7.66s", 7_660),
            ("6m0s", 360_000),
            ("2m59.56s", 179_560),
            ("16m17.764s", 977_764),
            ("1h12m3.5s", 4_323_500),
            ("1h", 3_600_000),
            ("1d2h", 93_600_000),
            ("1000us", 1),
            ("1000000ns", 1),
            ("0s", 0),
        ] {
            assert_eq!(go(text), Some(ms * MILLISECOND), "{text}");
        }
    }

    #[test]
    fn garbage_is_absent() {
        for bad in [
            "", "s", "5", "1m30", "-3s", "+3s", "1 s", "1.s", ".5s", "1S", "1w", "1.2.3s", "abc",
        ] {
            assert_eq!(go(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn sums_its_parts(h in 0u64..10_000, m in 0u64..60, ms in 0u64..60_000) {
            let text = format!("{h}h{m}m{}.{:03}s", ms / 1000, ms % 1000);
            let want = u128::from((h * 60 + m) * 60_000 + ms) * MILLISECOND;
            prop_assert_eq!(go(&text), Some(want));
        }

        #[test]
        fn total(text in "([0-9.]{0,40}[a-zµ]{0,3}){0,6}") {
            let _ = go(&text);
        }
    }
}
