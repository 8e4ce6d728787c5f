//! Dates and moments, in nanoseconds since 1970.

use std::{
    str::FromStr,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, header};
use jiff::{
    Timestamp,
    fmt::{rfc2822::DateTimeParser, temporal::Pieces},
};

use super::number;

/// What dates are measured against: the response's own `Date`, so that a skewed clock here does no
/// harm, else wall time. Looked up at most once, and only when there is a date to measure.
pub(super) struct Origin<'h, F> {
    headers: &'h HeaderMap,
    now: Option<F>,
    at: i128,
}

impl<'h, F: FnOnce() -> SystemTime> Origin<'h, F> {
    pub(super) fn new(headers: &'h HeaderMap, now: F) -> Self {
        Self {
            headers,
            now: Some(now),
            at: 0,
        }
    }

    /// Nanoseconds from the origin to `moment`; `None` if that is in the past.
    pub(super) fn until(&mut self, moment: i128) -> Option<u128> {
        if let Some(now) = self.now.take() {
            self.at = self
                .headers
                .get_all(header::DATE)
                .iter()
                .filter_map(number::text)
                .find_map(http)
                .unwrap_or_else(|| since_1970(now()));
        }
        u128::try_from(moment.saturating_sub(self.at)).ok()
    }
}

/// An HTTP date in the three forms of RFC 9110 5.6.7.
pub(super) fn http(text: &str) -> Option<i128> {
    match httpdate::parse_http_date(text) {
        Ok(date) => Some(since_1970(date)),
        Err(_) => on_another_weekday(text),
    }
}

/// The preferred form with a weekday that is not the date's: `httpdate` refuses it, but the date
/// is no less clear, and to ignore it would be too early.
fn on_another_weekday(text: &str) -> Option<i128> {
    const RELAXED: DateTimeParser = DateTimeParser::new().relaxed_weekday(true);
    const FORM: usize = "Sun, 06 Nov 1994 08:49:37 GMT".len();
    if text.len() != FORM || text.get(3..5) != Some(", ") || !text.ends_with(" GMT") {
        return None;
    }
    Some(RELAXED.parse_timestamp(text).ok()?.as_nanosecond())
}

/// RFC 3339, with `Z` or an offset; seconds may be left out (Jira does).
pub(super) fn rfc3339(text: &str) -> Option<i128> {
    let Ok(moment) = Timestamp::from_str(text) else {
        return last_days(text);
    };
    // A leap second is taken for the second before it, which would be too early.
    let leap = if text.get(16..19) == Some(":60") {
        Duration::from_secs(1)
    } else {
        Duration::ZERO
    };
    Some(moment.as_nanosecond().saturating_add(nanos(leap)))
}

/// The last days of the year 9999 stand for "never" and lie beyond the range of [`Timestamp`]:
/// they are taken for a moment after all of them.
fn last_days(text: &str) -> Option<i128> {
    const JANUARY_3_10000: i128 = 253_402_473_600;
    let pieces = Pieces::parse(text).ok()?;
    let date = pieces.date();
    let never = date.year() == 9999 && date.month() == 12 && date.day() >= 30;
    (never && pieces.time().is_some() && pieces.offset().is_some())
        .then_some(JANUARY_3_10000 * 1_000_000_000)
}

fn since_1970(time: SystemTime) -> i128 {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => nanos(after),
        Err(before) => -nanos(before.duration()),
    }
}

fn nanos(d: Duration) -> i128 {
    i128::try_from(d.as_nanos()).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: i128 = 1_000_000_000;
    const NOON: i128 = 1_790_510_400 * SECOND; // 2026-09-27T12:00:00Z

    #[test]
    fn rfc3339_forms() {
        for (text, after_noon_ms) in [
            ("2026-09-27T12:00:00Z", 0),
            ("2026-09-27T12:00:01.250Z", 1250),
            ("2026-09-27t12:00:20z", 20_000),
            ("2026-09-27T07:00:30-05:00", 30_000),
            ("2026-09-27T12:05Z", 300_000),
            ("2026-09-27T12:00:60Z", 60_000),
        ] {
            assert_eq!(
                rfc3339(text),
                Some(NOON + after_noon_ms * 1_000_000),
                "{text}"
            );
        }
        for bad in [
            "",
            "2026-09-27",
            "2026-09-27T12:00:00",
            "2026-13-01T00:00:00Z",
            "soon",
        ] {
            assert_eq!(rfc3339(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_date_on_another_weekday_is_a_date() {
        assert_eq!(http("Mon, 27 Sep 2026 12:00:00 GMT"), Some(NOON));
        for bad in [
            "Xyz, 27 Sep 2026 12:00:00 GMT",
            "Mon, 27 Sep 2026 12:00:00 EST",
            "Mon, 31 Sep 2026 12:00:00 GMT",
            "Mon, 27 Sep 26 12:00:00 +0000",
        ] {
            assert_eq!(http(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_end_of_the_calendar_is_far_not_absent() {
        assert!(rfc3339("9999-12-31T23:59:59Z") > rfc3339("9999-12-29T00:00:00Z"));
        assert_eq!(rfc3339("9999-12-31T23:59:59"), None);
    }

    proptest! {
        #[test]
        fn dates_are_monotonic(a in 0u64..4_000_000_000, b in 0u64..4_000_000_000) {
            let at = |s: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(s);
            let (early, late) = (a.min(b), a.max(b));
            let read = |s| http(&httpdate::fmt_http_date(at(s))).unwrap();
            prop_assert!(read(early) <= read(late));
            prop_assert_eq!(read(late) - read(early), i128::from(late - early) * SECOND);
            let read = |s: u64| rfc3339(&Timestamp::from_second(s as i64).unwrap().to_string()).unwrap();
            prop_assert_eq!(read(late) - read(early), i128::from(late - early) * SECOND);
        }

        #[test]
        fn total(text in "\\PC{0,80}") {
            let _ = (http(&text), rfc3339(&text));
        }
    }
}
