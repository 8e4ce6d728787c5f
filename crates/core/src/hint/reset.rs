//! Buckets that are used up, and when they are full again, in all the spellings of the vendors.

use std::time::SystemTime;

use http::HeaderMap;

use super::{
    Source,
    date::Origin,
    moment,
    number::{self, SECOND},
};

/// Longer field names are not looked at: no vendor's is longer.
const LONGEST_NAME: usize = 64;

/// What shows that a bucket is used up.
#[derive(Clone, Copy)]
enum Proof {
    /// So many are left: none.
    Remaining(&'static str),
    /// The state of a window: rejected.
    Status(&'static str),
}
use Proof::{Remaining, Status};

/// How vendors spell the reset of a bucket and what shows that it is used up. A `*` is the name of
/// the bucket, the same in both. The first that fits counts.
#[rustfmt::skip]
const SPELLINGS: [(&str, Proof); 8] = [
    // Discord: seconds from now.
    ("x-ratelimit-reset-after", Remaining("x-ratelimit-remaining")),
    // GitHub, Together, OpenRouter, Jira.
    ("x-ratelimit-reset", Remaining("x-ratelimit-remaining")),
    // OpenAI, Azure, Groq, Cerebras, Anthropic's compatible endpoint. Mistral has no resets.
    ("x-ratelimit-reset-*", Remaining("x-ratelimit-remaining-*")),
    // X.
    ("x-rate-limit-reset", Remaining("x-rate-limit-remaining")),
    // GitLab, and the third draft of the IETF.
    ("ratelimit-reset", Remaining("ratelimit-remaining")),
    // Anthropic's subscriptions: the tightest window, and each.
    ("anthropic-ratelimit-unified-reset", Status("anthropic-ratelimit-unified-status")),
    ("anthropic-ratelimit-unified-*-reset", Status("anthropic-ratelimit-unified-*-status")),
    // Anthropic.
    ("anthropic-ratelimit-*-reset", Remaining("anthropic-ratelimit-*-remaining")),
];

/// What may be spent beyond the windows of a subscription. It is no window: it stays rejected for
/// whoever has none.
const OVERAGE: &str = "anthropic-ratelimit-unified-overage-";

/// Resets that have a [`Source`] of their own; others have that of their spelling.
#[rustfmt::skip]
const KNOWN: [&str; 21] = [
    "x-ratelimit-reset-requests", "x-ratelimit-reset-tokens",
    "x-ratelimit-reset-input-tokens", "x-ratelimit-reset-output-tokens",
    "x-ratelimit-reset-requests-second", "x-ratelimit-reset-tokens-second",
    "x-ratelimit-reset-requests-minute", "x-ratelimit-reset-tokens-minute",
    "x-ratelimit-reset-requests-hour", "x-ratelimit-reset-tokens-hour",
    "x-ratelimit-reset-requests-day", "x-ratelimit-reset-tokens-day",
    "x-ratelimit-reset-req-minute", "x-ratelimit-reset-images",
    "anthropic-ratelimit-unified-5h-reset", "anthropic-ratelimit-unified-7d-reset",
    "anthropic-ratelimit-unified-7d_opus-reset",
    "anthropic-ratelimit-requests-reset", "anthropic-ratelimit-tokens-reset",
    "anthropic-ratelimit-input-tokens-reset", "anthropic-ratelimit-output-tokens-reset",
];

/// What the buckets of a response say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Resets {
    /// One is used up.
    pub(super) exhausted: bool,
    /// When to come back, in nanoseconds.
    pub(super) asked: Option<(u128, Source)>,
}

/// The latest reset of the buckets that are used up, since all limits hold at once. Where nothing
/// shows how full any bucket is, the earliest reset: which of them was hit is not known, and the
/// slow ones are per day.
pub(super) fn read<F: FnOnce() -> SystemTime>(
    headers: &HeaderMap,
    origin: &mut Origin<'_, F>,
) -> Resets {
    let (mut exhausted, mut known) = (false, false);
    let (mut latest, mut earliest) = (None, None);
    for name in headers.keys().map(http::HeaderName::as_str) {
        if name.len() > LONGEST_NAME || name.starts_with(OVERAGE) {
            continue;
        }
        for (reset, proof) in SPELLINGS {
            if let Some(bucket) = bucket(reset, name) {
                let used_up = proof.of(headers, bucket);
                let asked = latest_line(headers, name, origin);
                if let (Some(asked), None | Some(true)) = (asked, used_up) {
                    // Of two equal ones the longer name says more.
                    let found = (asked, name.len(), Source::Reset(source(reset, name)));
                    if used_up.is_some() {
                        latest = latest.filter(|l| after(l, &found)).or(Some(found));
                    } else {
                        earliest = earliest.filter(|e| after(&found, e)).or(Some(found));
                    }
                }
                break;
            }
            if proof.is_shown_by(name) {
                let used_up = proof.in_field(headers, name);
                known |= used_up.is_some();
                exhausted |= used_up == Some(true);
                break;
            }
        }
    }
    let asked = match (exhausted, known) {
        (true, _) => latest,
        (false, true) => None,
        (false, false) => earliest,
    };
    Resets {
        exhausted,
        asked: asked.map(|(nanos, _, source)| (nanos, source)),
    }
}

/// Whether `a` resets after `b`.
fn after(a: &(u128, usize, Source), b: &(u128, usize, Source)) -> bool {
    (a.0, a.1) > (b.0, b.1)
}

impl Proof {
    fn pattern(self) -> &'static str {
        match self {
            Remaining(pattern) | Status(pattern) => pattern,
        }
    }

    fn is_shown_by(self, name: &str) -> bool {
        bucket(self.pattern(), name).is_some()
    }

    /// Whether a bucket is used up; `None` if nothing says so.
    fn of(self, headers: &HeaderMap, bucket: &str) -> Option<bool> {
        match self.pattern().split_once('*') {
            None => self.in_field(headers, self.pattern()),
            Some((before, behind)) => self.in_field(headers, &format!("{before}{bucket}{behind}")),
        }
    }

    /// One line that says so is enough: gateways add lines of their own.
    fn in_field(self, headers: &HeaderMap, name: &str) -> Option<bool> {
        headers
            .get_all(name)
            .iter()
            .filter_map(number::text)
            .filter_map(|text| match self {
                Status(_) => Some(text.eq_ignore_ascii_case("rejected")),
                // Azure sends -1 for what it does not count.
                Remaining(_) => match text.strip_prefix('-') {
                    Some(negative) => number::decimal(negative, SECOND).map(|_| false),
                    None => number::decimal(text, SECOND).map(|left| left == 0),
                },
            })
            .max()
    }
}

/// The bucket in a field's name, "" where the pattern has none.
fn bucket<'n>(pattern: &str, name: &'n str) -> Option<&'n str> {
    match pattern.split_once('*') {
        None => (pattern == name).then_some(""),
        Some((before, behind)) => name
            .strip_prefix(before)?
            .strip_suffix(behind)
            .filter(|bucket| !bucket.is_empty()),
    }
}

fn source(pattern: &'static str, name: &str) -> &'static str {
    KNOWN
        .into_iter()
        .find(|known| *known == name)
        .unwrap_or(pattern)
}

fn latest_line<F: FnOnce() -> SystemTime>(
    headers: &HeaderMap,
    name: &str,
    origin: &mut Origin<'_, F>,
) -> Option<u128> {
    headers
        .get_all(name)
        .iter()
        .filter_map(number::text)
        .filter_map(|text| moment::until(text, origin))
        .max()
}

#[cfg(test)]
mod tests {
    use super::{super::number::MILLISECOND, *};
    use http::{HeaderName, HeaderValue};
    use std::time::Duration;

    const NOON: u64 = 1_790_510_400; // 2026-09-27T12:00:00Z

    fn noon() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(NOON)
    }

    fn resets(fields: &[(&str, &str)]) -> Resets {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        read(&headers, &mut Origin::new(&headers, noon))
    }

    fn ms(fields: &[(&str, &str)]) -> Option<u128> {
        resets(fields).asked.map(|(nanos, _)| nanos / MILLISECOND)
    }

    /// One row for each vendor's spelling: the fields of a bucket that is used up, and the wait.
    #[test]
    fn every_spelling() {
        #[rustfmt::skip]
        let rows = [
            ([("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "6m0s")], 360_000),
            ([("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "12")], 12_000),
            ([("x-ratelimit-remaining-tokens-minute", "0.0"), ("x-ratelimit-reset-tokens-minute", "11.1")], 11_100),
            ([("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "60")], 60_000),
            ([("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1790510430")], 30_000),
            ([("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1790510445001")], 45_001),
            ([("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "2026-09-27T12:05Z")], 300_000),
            ([("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "Sun, 27 Sep 2026 12:00:09 GMT")], 9_000),
            ([("x-ratelimit-remaining", "0"), ("x-ratelimit-reset-after", "64.57")], 64_570),
            ([("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1790510464.57")], 64_570),
            ([("x-rate-limit-remaining", "0"), ("x-rate-limit-reset", "1790510401")], 1_000),
            ([("ratelimit-remaining", "0"), ("ratelimit-reset", "50")], 50_000),
            ([("ratelimit-remaining", "0"), ("ratelimit-reset", "1790510460")], 60_000),
            ([("anthropic-ratelimit-requests-remaining", "0"), ("anthropic-ratelimit-requests-reset", "2026-09-27T12:00:12Z")], 12_000),
            ([("anthropic-ratelimit-unified-5h-status", "rejected"), ("anthropic-ratelimit-unified-5h-reset", "1790510580")], 180_000),
            ([("anthropic-ratelimit-unified-status", "rejected"), ("anthropic-ratelimit-unified-reset", "1790510580")], 180_000),
        ];
        for (fields, want) in rows {
            assert_eq!(ms(&fields), Some(want), "{fields:?}");
            let (_, source) = resets(&fields).asked.unwrap();
            assert_eq!(source.field(), Some(fields[1].0));
            let full = [(fields[0].0, "7"), fields[1]];
            assert_eq!(ms(&full), None, "not used up: {full:?}");
        }
    }

    #[test]
    fn the_latest_of_the_used_up() {
        let fields = [
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "5s"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "40s"),
            ("x-ratelimit-remaining-images", "3"),
            ("x-ratelimit-reset-images", "5m"),
            ("x-ratelimit-reset-audio", "5m"),
        ];
        assert_eq!(ms(&fields), Some(40_000));
    }

    #[test]
    fn the_earliest_where_nothing_shows_how_full_they_are() {
        let fields = [
            ("x-ratelimit-reset-requests-day", "33011.38"),
            ("x-ratelimit-reset-tokens-minute", "11.1"),
        ];
        assert_eq!(ms(&fields), Some(11_100));
        assert!(!resets(&fields).exhausted);
    }

    #[test]
    fn used_up_without_a_reset() {
        let mistral = [("x-ratelimit-remaining-req-minute", "0")];
        assert_eq!(
            resets(&mistral),
            Resets {
                exhausted: true,
                asked: None
            }
        );
        let past = [
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "1609844400"),
        ];
        assert_eq!(
            resets(&past),
            Resets {
                exhausted: true,
                asked: None
            }
        );
    }

    #[test]
    fn not_counted_is_not_used_up() {
        let azure = [
            ("x-ratelimit-remaining-tokens", "-1"),
            ("x-ratelimit-reset-tokens", "0"),
        ];
        assert_eq!(resets(&azure), Resets::default());
        let overage = [
            ("anthropic-ratelimit-unified-overage-status", "rejected"),
            ("anthropic-ratelimit-unified-overage-reset", "1790900000"),
        ];
        assert_eq!(resets(&overage), Resets::default());
    }

    #[test]
    fn a_bucket_of_any_name() {
        let fields = [
            ("x-ratelimit-remaining-gpu", "0"),
            ("x-ratelimit-reset-gpu", "3s"),
        ];
        let (_, source) = resets(&fields).asked.unwrap();
        assert_eq!(source, Source::Reset("x-ratelimit-reset-*"));
    }

    #[test]
    fn of_lines_that_differ_the_later_counts() {
        let fields = [
            ("x-ratelimit-remaining", "9"),
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "5"),
            ("x-ratelimit-reset", "soon"),
            ("x-ratelimit-reset", "30"),
        ];
        assert_eq!(ms(&fields), Some(30_000));
    }
}
