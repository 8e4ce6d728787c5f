//! Numbers by their digits. `f64` would round, and takes "inf" and "nan"; `u64` takes "+5".

use std::time::Duration;

/// Longer values are not looked at: no number or date of use is longer.
const LONGEST_VALUE: usize = 64;

/// Nanoseconds in one second.
pub(super) const SECOND: u128 = 1_000_000_000;
/// Nanoseconds in one millisecond.
pub(super) const MILLISECOND: u128 = 1_000_000;

/// A value as text without the space around it, if it is short and ASCII.
pub(super) fn text(value: &http::HeaderValue) -> Option<&str> {
    if value.len() > LONGEST_VALUE {
        return None;
    }
    Some(value.to_str().ok()?.trim_matches([' ', '\t']))
}

/// A decimal number without sign or exponent ("2", "1.5") in units of `nanos_per_unit`, as
/// nanoseconds: saturating, and rounded up where it is finer.
pub(super) fn decimal(text: &str, nanos_per_unit: u128) -> Option<u128> {
    let (whole, fraction) = match text.split_once('.') {
        Some((_, "")) => return None,
        Some((whole, fraction)) => (whole, fraction),
        None => (text, ""),
    };
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let mut total = digits(whole).saturating_mul(nanos_per_unit);
    let mut place = nanos_per_unit;
    for b in fraction.bytes() {
        let digit = u128::from(b - b'0');
        if place % 10 == 0 {
            place /= 10;
            total = total.saturating_add(digit * place);
        } else if digit > 0 {
            // Below a nanosecond: up, never down.
            total = total.saturating_add(1);
            break;
        }
    }
    Some(total)
}

/// A whole number without sign, saturating.
pub(super) fn whole(text: &str) -> Option<u128> {
    (!text.is_empty() && all_digits(text)).then(|| digits(text))
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn digits(text: &str) -> u128 {
    text.bytes().fold(0u128, |n, b| {
        n.saturating_mul(10).saturating_add(u128::from(b - b'0'))
    })
}

/// Nanoseconds as a [`Duration`] of whole milliseconds, rounded up so that no wait is shorter than
/// asked, saturating.
pub(super) fn whole_millis_up(nanos: u128) -> Duration {
    let nanos = nanos.div_ceil(MILLISECOND).saturating_mul(MILLISECOND);
    match u64::try_from(nanos / SECOND) {
        Ok(secs) => Duration::new(secs, u32::try_from(nanos % SECOND).unwrap_or(0)),
        Err(_) => Duration::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn digits_only() {
        assert_eq!(decimal("2", SECOND), Some(2 * SECOND));
        assert_eq!(decimal("1.5", SECOND), Some(SECOND + SECOND / 2));
        assert_eq!(decimal("0.0000000001", SECOND), Some(1), "up, never down");
        for bad in [
            "", ".", "1.", ".5", "+1", "-1", "1e3", "nan", "inf", "1_0", "1.2.3",
        ] {
            assert_eq!(decimal(bad, SECOND), None, "{bad:?}");
        }
        assert_eq!(whole("007"), Some(7));
        assert_eq!(whole("1.0"), None);
    }

    #[test]
    fn saturates() {
        let huge = "9".repeat(60);
        assert_eq!(decimal(&huge, SECOND), Some(u128::MAX));
        assert_eq!(whole_millis_up(u128::MAX), Duration::MAX);
    }

    proptest! {
        #[test]
        fn never_less_than_the_literal_number(whole in 0u64..1 << 40, fraction in "[0-9]{0,20}") {
            let text = if fraction.is_empty() { whole.to_string() } else { format!("{whole}.{fraction}") };
            let wait = whole_millis_up(decimal(&text, SECOND).unwrap());
            // Compared on the first 18 decimals, in units of 1e-18 s.
            let padded = format!("{fraction:0<18}");
            let asked = u128::from(whole) * 10u128.pow(18) + padded[..18].parse::<u128>().unwrap();
            let given = wait.as_nanos() * 10u128.pow(9);
            prop_assert!(given >= asked);
            prop_assert!(given - asked <= 10u128.pow(15), "at most a millisecond more");
        }

        #[test]
        fn total(text in "\\PC{0,80}", unit in 1u128..=SECOND) {
            let _ = decimal(&text, unit).map(whole_millis_up);
        }
    }
}
