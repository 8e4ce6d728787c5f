//! The value of a reset: when a bucket is full again.

use std::time::SystemTime;

use super::{
    date::{self, Origin},
    number::{self, MILLISECOND, SECOND},
    span,
};

/// Nanoseconds until a reset. A bare number below 30 days is seconds from now, from 10^12 on
/// milliseconds since 1970, else seconds since 1970. What is in the past says nothing.
pub(super) fn until<F: FnOnce() -> SystemTime>(
    text: &str,
    origin: &mut Origin<'_, F>,
) -> Option<u128> {
    const MONTH: u128 = 30 * 86_400 * SECOND;
    const MILLIS_FROM: u128 = 1_000_000_000_000 * SECOND;
    let moment = match number::decimal(text, SECOND) {
        Some(delta) if delta < MONTH => return Some(delta),
        Some(epoch) if epoch < MILLIS_FROM => i128::try_from(epoch).unwrap_or(i128::MAX),
        Some(_) => {
            let epoch = number::decimal(text, MILLISECOND)?;
            i128::try_from(epoch).unwrap_or(i128::MAX)
        }
        None => match span::go(text) {
            Some(delta) => return Some(delta),
            None => date::rfc3339(text).or_else(|| date::http(text))?,
        },
    };
    origin.until(moment)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;
    use proptest::prelude::*;
    use std::time::Duration;

    const NOON: u64 = 1_790_510_400; // 2026-09-27T12:00:00Z

    fn noon() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(NOON)
    }

    fn read(text: &str) -> Option<u128> {
        let headers = HeaderMap::new();
        until(text, &mut Origin::new(&headers, noon))
    }

    #[test]
    fn the_size_of_a_number_tells_what_it_is() {
        for (text, ms) in [
            ("0", Some(0)),
            ("2591999.9", Some(2_591_999_900)),
            ("2592000", None),
            ("1790510400", Some(0)),
            ("1790510399", None),
            ("1790510400.0001", Some(1)),
            ("1790510400001", Some(1)),
            ("1790510399999", None),
            (
                "999999999999",
                Some((999_999_999_999 - u128::from(NOON)) * 1000),
            ),
        ] {
            let up = |nanos: u128| nanos.div_ceil(MILLISECOND);
            assert_eq!(read(text).map(up), ms, "{text}");
        }
    }

    #[test]
    fn garbage_is_absent() {
        for bad in [
            "",
            "abc",
            "-5",
            "+5",
            "5 s",
            "1e3",
            "nan",
            "2026-09-27",
            "1_000",
        ] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
        assert!(read(&"9".repeat(60)) > Some(u128::from(u64::MAX) * SECOND));
    }

    proptest! {
        #[test]
        fn one_moment_in_four_spellings(ahead in 0u64..400_000_000) {
            let at = noon() + Duration::from_secs(ahead);
            let epoch = NOON + ahead;
            let texts = [
                epoch.to_string(),
                format!("{epoch}000"),
                jiff::Timestamp::try_from(at).unwrap().to_string(),
                httpdate::fmt_http_date(at),
            ];
            for text in texts {
                prop_assert_eq!(read(&text), Some(u128::from(ahead) * SECOND), "{}", text);
            }
        }
    }
}
