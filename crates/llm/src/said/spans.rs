//! Spans of time in words: "34.07s", "900.2ms", "6m0s", "1h 2m", "20 seconds". Total and exact.

use std::time::Duration;

const SECOND: u128 = 1_000_000_000;

/// What vendors write before a span, in lower case.
const PHRASES: [&str; 5] = [
    "please retry in ",
    "please try again in ",
    "please retry after ",
    "try again in ",
    "retry after ",
];

/// Longer figures are no span of use.
const LONGEST_FIGURE: usize = 40;

/// The span that a message asks for, in lower case.
pub(super) fn asked(message: &str) -> Option<Duration> {
    PHRASES.iter().find_map(|phrase| {
        message.match_indices(phrase).find_map(|(at, found)| {
            let after = message.get(at + found.len()..)?;
            leading(after).map(|(span, _)| span)
        })
    })
}

/// A text that is one span and nothing else.
pub(super) fn whole(text: &str) -> Option<Duration> {
    match leading(text.trim())? {
        (span, "") => Some(span),
        _ => None,
    }
}

/// A bare number of seconds, decimals allowed.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    match figure(text)? {
        (nanos, "") => Some(duration(scaled(nanos, SECOND))),
        _ => None,
    }
}

/// One or more figures with units at the start of a text, and what follows them.
fn leading(text: &str) -> Option<(Duration, &str)> {
    let (mut total, mut rest, mut any) = (0u128, text, false);
    while let Some((nanos, after)) = part(rest) {
        total = total.saturating_add(nanos);
        any = true;
        rest = after;
        // "1h 2m": a blank only between parts.
        match rest.strip_prefix(' ') {
            Some(next) if part(next).is_some() => rest = next,
            _ => {}
        }
    }
    any.then(|| (duration(total), rest))
}

fn part(text: &str) -> Option<(u128, &str)> {
    let (number, after) = figure(text)?;
    let after = after.strip_prefix(' ').unwrap_or(after);
    let end = after
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(after.len());
    let (word, rest) = after.split_at_checked(end)?;
    let unit = match word {
        "ns" => 1,
        "us" => 1_000,
        "ms" | "millisecond" | "milliseconds" => 1_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => SECOND,
        "m" | "min" | "mins" | "minute" | "minutes" => 60 * SECOND,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600 * SECOND,
        "d" | "day" | "days" => 86_400 * SECOND,
        _ => return None,
    };
    Some((scaled(number, unit), rest))
}

/// Digits before and after a point.
type Figure<'t> = (&'t str, &'t str);

fn figure(text: &str) -> Option<(Figure<'_>, &str)> {
    let (whole, rest) = digits(text);
    if whole.is_empty() {
        return None;
    }
    let fraction = rest
        .strip_prefix('.')
        .map(digits)
        .filter(|(f, _)| !f.is_empty());
    let (fraction, rest) = fraction.unwrap_or(("", rest));
    (whole.len() + fraction.len() <= LONGEST_FIGURE).then_some(((whole, fraction), rest))
}

fn digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// A figure in nanoseconds, saturating. What is below one rounds up: no wait is shorter than asked.
fn scaled((whole, fraction): Figure<'_>, unit: u128) -> u128 {
    let read = |n: u128, b: u8| n.saturating_mul(10).saturating_add(u128::from(b - b'0'));
    let whole = whole.bytes().fold(0, read).saturating_mul(unit);
    // 20 digits of a day in nanoseconds fit; more say nothing.
    let kept = fraction.get(..20).unwrap_or(fraction);
    let over = fraction.len() > kept.len();
    let places = 10u128.pow(u32::try_from(kept.len()).unwrap_or(20));
    let part = kept.bytes().fold(0, read).saturating_mul(unit);
    whole
        .saturating_add(part.div_ceil(places))
        .saturating_add(u128::from(over))
}

/// Rounded up to whole milliseconds.
pub(super) fn whole_millis(span: Duration) -> Duration {
    duration(span.as_nanos())
}

fn duration(nanos: u128) -> Duration {
    let millis = nanos.div_ceil(1_000_000);
    Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(text: &str) -> Option<u128> {
        whole(text).map(|d| d.as_millis())
    }

    #[test]
    fn spans_of_all_spellings() {
        assert_eq!(ms("34s"), Some(34_000));
        assert_eq!(ms("45.837906927s"), Some(45_838));
        assert_eq!(ms("900.2ms"), Some(901));
        assert_eq!(ms("6m0s"), Some(360_000));
        assert_eq!(ms("1h2m3.5s"), Some(3_723_500));
        assert_eq!(ms("1h 2m"), Some(3_720_000));
        assert_eq!(ms("20 seconds"), Some(20_000));
        assert_eq!(ms("1 day"), Some(86_400_000));
        assert_eq!(ms("0s"), Some(0));
        assert_eq!(ms("0.0000000001s"), Some(1), "up, never down");
        for not in [
            "", "s", "-3s", "3", "3 s s", "3parsecs", "inf", "1e3s", ".5s", "3.s",
        ] {
            assert_eq!(ms(not), None, "{not}");
        }
    }

    #[test]
    fn spans_in_messages() {
        let ms = |text: &str| asked(text).map(|d| d.as_millis());
        assert_eq!(
            ms("quota exceeded, limit: 2\nplease retry in 56.185908122s."),
            Some(56_186)
        );
        assert_eq!(ms("please try again in 644ms. visit"), Some(644));
        assert_eq!(ms("please try again in 7m12.5s. need more"), Some(432_500));
        assert_eq!(ms("please retry after 7 seconds."), Some(7_000));
        assert_eq!(ms("please try again in a moment"), None);
        assert_eq!(ms("please try again in 5"), None);
    }

    #[test]
    fn bare_seconds() {
        assert_eq!(seconds("64.57"), Some(Duration::from_millis(64_570)));
        assert_eq!(seconds("120"), Some(Duration::from_secs(120)));
        assert_eq!(seconds("-1"), None);
        assert_eq!(seconds("1e9"), None);
    }

    proptest! {
        #[test]
        fn any_text_gives_an_answer(text in "\\PC*") {
            let _ = (whole(&text), asked(&text.to_lowercase()), seconds(&text));
        }

        #[test]
        fn never_less_than_asked(whole_part in any::<u64>(), fraction in 0u32..1_000_000_000) {
            let span = whole(&format!("{whole_part}.{fraction:09}s")).unwrap();
            let asked = Duration::new(whole_part, fraction);
            let most = Duration::from_millis(u64::MAX);
            prop_assert!(span >= asked.min(most));
            prop_assert!(span <= asked.saturating_add(Duration::from_millis(1)));
        }
    }
}
