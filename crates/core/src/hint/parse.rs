//! Header values to hints. Total: any bytes, any length, any number of field lines.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, header};

use super::{Hint, Source};

/// Longer values are not looked at: no number or date of use is longer.
const LONGEST_VALUE: usize = 64;

const MS_HEADERS: [HeaderName; 2] = [
    HeaderName::from_static("retry-after-ms"),
    HeaderName::from_static("x-ms-retry-after-ms"),
];

/// The hint in response headers, or `None`.
///
/// Dates are measured against the response's own `Date`, so that a skewed clock here does no
/// harm; `now` is asked for wall time only where there is none. A date in the past asks for no
/// minimum. A repeated field counts by its first usable line.
pub fn from_headers(headers: &HeaderMap, now: impl FnOnce() -> SystemTime) -> Option<Hint> {
    for name in &MS_HEADERS {
        // Zero falls through: some proxies send it beside a real Retry-After.
        let asked = values(headers, name)
            .filter_map(|v| decimal(v, 1_000_000))
            .find(|asked| !asked.is_zero());
        if let Some(wait) = asked {
            return Some(after(wait, Source::RetryAfterMs));
        }
    }
    let mut now = Some(now);
    values(headers, &header::RETRY_AFTER).find_map(|value| {
        // A number is never tried as a date: "-5" must not become a year.
        if value.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
            return decimal(value, 1_000_000_000)
                .map(|wait| after(wait, Source::RetryAfterSeconds));
        }
        let date = httpdate::parse_http_date(value).ok()?;
        let origin = values(headers, &header::DATE)
            .find_map(|v| httpdate::parse_http_date(v).ok())
            .or_else(|| now.take().map(|now| now()))?;
        // The difference of two dates; a date in the past asks for no wait.
        let wait = date.duration_since(origin).unwrap_or_default();
        Some(after(wait, Source::RetryAfterDate))
    })
}

fn values<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    headers
        .get_all(name)
        .iter()
        .filter(|v| v.len() <= LONGEST_VALUE)
        .filter_map(|v| v.to_str().ok())
        .map(|v| v.trim_matches([' ', '\t']))
}

fn after(wait: Duration, source: Source) -> Hint {
    Hint::After {
        wait: whole_millis_up(wait),
        source,
    }
}

/// Rounds up, so that no wait is shorter than asked.
fn whole_millis_up(d: Duration) -> Duration {
    match d.subsec_nanos() % 1_000_000 {
        0 => d,
        over => d.saturating_add(Duration::from_nanos(1_000_000 - u64::from(over))),
    }
}

/// A decimal number without sign or exponent ("2", "1.5") in units of `nanos_per_unit`,
/// saturating. Read by digits: `f64` would round, and takes "inf" and "nan".
fn decimal(text: &str, nanos_per_unit: u128) -> Option<Duration> {
    let (whole, fraction) = match text.split_once('.') {
        Some((_, "")) => return None,
        Some((whole, fraction)) => (whole, fraction),
        None => (text, ""),
    };
    let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    // The most nanoseconds that a Duration holds.
    let most = Duration::MAX.as_nanos();
    let mut total = whole
        .bytes()
        .fold(0u128, |n, b| {
            n.saturating_mul(10).saturating_add(u128::from(b - b'0'))
        })
        .saturating_mul(nanos_per_unit)
        .min(most);
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
    let total = total.min(most);
    let secs = u64::try_from(total / 1_000_000_000).unwrap_or(u64::MAX);
    let nanos = u32::try_from(total % 1_000_000_000).unwrap_or(0);
    Some(Duration::new(secs, nanos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const NOW: Duration = Duration::from_secs(1_445_412_480); // Wed, 21 Oct 2015 07:28:00 GMT

    fn read(fields: &[(&'static str, &str)]) -> Option<Hint> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        from_headers(&headers, || SystemTime::UNIX_EPOCH + NOW)
    }

    fn ms(fields: &[(&'static str, &str)]) -> Option<u128> {
        read(fields).map(|h| h.after().unwrap().as_millis())
    }

    #[test]
    fn seconds_and_decimals() {
        assert_eq!(ms(&[("retry-after", "2")]), Some(2000));
        assert_eq!(ms(&[("retry-after", "2.0")]), Some(2000));
        assert_eq!(ms(&[("retry-after", "1.5")]), Some(1500));
        assert_eq!(ms(&[("retry-after", " 7 ")]), Some(7000));
        assert_eq!(ms(&[("retry-after", "0")]), Some(0));
        assert_eq!(ms(&[("retry-after", "2030")]), Some(2_030_000));
        assert_eq!(
            ms(&[("retry-after", "0.0001")]),
            Some(1),
            "never shorter than asked"
        );
        assert_eq!(ms(&[("retry-after", "1.0000000001")]), Some(1001));
    }

    #[test]
    fn garbage_is_absent() {
        for v in [
            "-5", "+5", "", "soon", "nan", "inf", "1e3", "5s", "5,6", ".5", "1.", "1.2.3", "0x10",
            "１",
        ] {
            assert_eq!(ms(&[("retry-after", v)]), None, "{v:?}");
        }
        let long = "1".repeat(100_000);
        assert_eq!(ms(&[("retry-after", &long)]), None);
    }

    #[test]
    fn huge_numbers_saturate() {
        let hint = read(&[("retry-after", "99999999999999999999999999")]).unwrap();
        assert!(hint.after().unwrap() > Duration::from_secs(u64::MAX / 2));
        let hint = read(&[(
            "retry-after-ms",
            "999999999999999999999999999999999999999999",
        )])
        .unwrap();
        assert!(hint.after().unwrap() > Duration::from_secs(u64::MAX / 2));
    }

    #[test]
    fn milliseconds_win_unless_zero() {
        let both = [("retry-after", "2"), ("retry-after-ms", "1500")];
        assert_eq!(
            read(&both),
            Some(Hint::After {
                wait: Duration::from_millis(1500),
                source: Source::RetryAfterMs
            })
        );
        assert_eq!(
            ms(&[("retry-after", "2"), ("retry-after-ms", "0")]),
            Some(2000)
        );
        assert_eq!(
            ms(&[("retry-after", "2"), ("retry-after-ms", "-1")]),
            Some(2000)
        );
        assert_eq!(ms(&[("x-ms-retry-after-ms", "20.5")]), Some(21));
    }

    #[test]
    fn three_date_forms_against_wall_time_or_date() {
        for v in [
            "Wed, 21 Oct 2015 07:28:30 GMT",
            "Wednesday, 21-Oct-15 07:28:30 GMT",
            "Wed Oct 21 07:28:30 2015",
        ] {
            assert_eq!(ms(&[("retry-after", v)]), Some(30_000), "{v}");
        }
        let skewed = [
            ("retry-after", "Wed, 21 Oct 2015 09:00:10 GMT"),
            ("date", "Wed, 21 Oct 2015 09:00:00 GMT"),
        ];
        assert_eq!(ms(&skewed), Some(10_000));
        assert_eq!(
            ms(&[("retry-after", "Wed, 21 Oct 2015 07:00:00 GMT")]),
            Some(0)
        );
    }

    #[test]
    fn first_usable_line_counts() {
        assert_eq!(
            ms(&[("retry-after", "soon"), ("retry-after", "3")]),
            Some(3000)
        );
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(from_headers(&headers, || SystemTime::UNIX_EPOCH), None);
    }
}
