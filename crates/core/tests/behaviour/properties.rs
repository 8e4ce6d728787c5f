//! What holds for all values.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderValue, StatusCode};
use proptest::prelude::*;
use tower_spillway_core::{
    Cause, Chance, Limits, Verdict,
    hint::{self, Hint, Jitter},
};

const MS: Duration = Duration::from_millis(1);

fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::MAX),
        (0u64..10_000).prop_map(Duration::from_millis),
        (any::<u64>(), 0u32..1_000_000_000).prop_map(|(s, n)| Duration::new(s, n)),
    ]
}

fn causes() -> impl Strategy<Value = Cause> {
    prop_oneof![
        Just(Cause::CallerFault),
        Just(Cause::TargetDown),
        Just(Cause::NotHere),
        Just(Cause::ServerForbids),
        Just(Cause::NotReplayable),
        Just(Cause::MayHaveBeenProcessed),
        Just(Cause::HintTooLong),
        Just(Cause::DeadlineWouldPass),
        (durations(), durations()).prop_map(|(waited, next)| Cause::BudgetDenied { waited, next }),
        Just(Cause::AttemptsExhausted),
        Just(Cause::OtherTargetFirst),
        Just(Cause::NotReady),
        Just(Cause::Refused),
    ]
}

fn verdicts() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        Just(Verdict::Pass),
        durations().prop_map(|after| Verdict::Retry { after }),
        causes().prop_map(Verdict::Stop),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    let of = || proptest::option::of(durations());
    (proptest::option::of(any::<u32>()), of(), of()).prop_map(
        |(max_attempts, longest_hint, max_total_wait)| Limits {
            max_attempts,
            longest_hint,
            max_total_wait,
        },
    )
}

/// Header values: any bytes that may stand in one, and what nearly is a number or a date.
fn values() -> impl Strategy<Value = Vec<u8>> {
    let near_number = "[-+]?[0-9]{0,40}[.,]?[0-9]{0,40}[a-z]{0,3}";
    let near_date =
        "(Mon|Wed|Xxx), [0-9]{1,3} (Oct|Feb|Foo) [0-9]{1,6} [0-9]{2}:[0-9]{2}:[0-9]{2} (GMT|UTC)";
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..100),
        near_number.prop_map(String::into_bytes),
        near_date.prop_map(String::into_bytes),
    ]
}

const NAMES: [&str; 4] = [
    "retry-after",
    "retry-after-ms",
    "x-ms-retry-after-ms",
    "date",
];

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_480)
}

fn read(fields: &[(&'static str, Vec<u8>)]) -> Option<Hint> {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        // Bytes that no field may hold never reach the parser.
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(*name, value);
        }
    }
    hint::read(StatusCode::TOO_MANY_REQUESTS, &headers, now).hint()
}

fn asked(name: &'static str, value: &str) -> Option<Duration> {
    read(&[(name, value.as_bytes().to_vec())]).and_then(Hint::after)
}

proptest! {
    #[test]
    fn verdicts_merge_in_any_order(a in verdicts(), b in verdicts(), c in verdicts()) {
        prop_assert_eq!(a.merge(b), b.merge(a));
        prop_assert_eq!(a.merge(b).merge(c), a.merge(b.merge(c)));
        prop_assert_eq!(a.merge(a), a);
        prop_assert_eq!(a.merge(Verdict::Pass), a);
    }

    #[test]
    fn a_merged_verdict_is_one_of_the_two_and_no_weaker(a in verdicts(), b in verdicts()) {
        let merged = a.merge(b);
        prop_assert!(merged == a || merged == b);
        let rank = |v: Verdict| match v {
            Verdict::Pass => 0,
            Verdict::Retry { .. } => 1,
            Verdict::Stop(_) => 2,
        };
        prop_assert_eq!(rank(merged), rank(a).max(rank(b)));
    }

    #[test]
    fn limits_merge_in_any_order(a in limits(), b in limits(), c in limits()) {
        prop_assert_eq!(a.merge(b), b.merge(a));
        prop_assert_eq!(a.merge(b).merge(c), a.merge(b.merge(c)));
        prop_assert_eq!(a.merge(a), a);
        prop_assert_eq!(a.merge(Limits::default()), a);
    }

    #[test]
    fn merged_limits_allow_nothing_that_one_forbids(a in limits(), b in limits(), sends: u32) {
        let allows = |l: Limits| l.max_attempts.is_none_or(|most| sends < most);
        prop_assert_eq!(allows(a.merge(b)), allows(a) && allows(b));
    }

    #[test]
    fn no_header_makes_the_parser_panic(
        fields in proptest::collection::vec((proptest::sample::select(&NAMES[..]), values()), 0..6)
    ) {
        if let Some(wait) = read(&fields).and_then(Hint::after) {
            prop_assert!(wait.subsec_nanos() % 1_000_000 == 0 || wait == Duration::MAX);
        }
    }

    #[test]
    fn seconds_are_never_cut(whole in 0u64..1 << 40, fraction in "[0-9]{0,12}") {
        let text = if fraction.is_empty() { whole.to_string() } else { format!("{whole}.{fraction}") };
        let wait = asked("retry-after", &text).unwrap();
        // In units of 10^-12 s, exactly.
        let parts: u128 = format!("{fraction:0<12}").parse().unwrap();
        let exact = u128::from(whole) * 1_000_000_000_000 + parts;
        let got = wait.as_nanos() * 1000;
        prop_assert!(got >= exact, "{} gave {:?}", text, wait);
        prop_assert!(got - exact < MS.as_nanos() * 1000, "{} gave {:?}", text, wait);
    }

    #[test]
    fn milliseconds_are_never_cut(whole in 1u64..1 << 40, fraction in "[0-9]{0,9}") {
        let text = if fraction.is_empty() { whole.to_string() } else { format!("{whole}.{fraction}") };
        let wait = asked("retry-after-ms", &text).unwrap();
        let over = !fraction.trim_matches('0').is_empty();
        prop_assert_eq!(wait.as_millis(), u128::from(whole) + u128::from(over));
    }

    #[test]
    fn dates_wait_for_the_difference(ahead in 0u64..100_000_000, own_date: bool) {
        let origin = now() + if own_date { Duration::from_secs(9_999) } else { Duration::ZERO };
        let at = httpdate::fmt_http_date(origin + Duration::from_secs(ahead));
        let mut fields = vec![("retry-after", at.into_bytes())];
        if own_date {
            fields.push(("date", httpdate::fmt_http_date(origin).into_bytes()));
        }
        prop_assert_eq!(read(&fields).and_then(Hint::after), Some(Duration::from_secs(ahead)));
    }

    #[test]
    fn jitter_only_adds_and_within_bounds(asked in durations(), draw: u64) {
        let wait = hint::wait(asked, &Jitter::Additive, &Chance::fixed(draw));
        prop_assert!(wait >= asked);
        let most = asked.saturating_add((asked / 2).min(Duration::from_secs(5)));
        prop_assert!(wait <= most);
        // Added jitter is whole milliseconds.
        prop_assert!(wait == Duration::MAX || (wait - asked).subsec_nanos() % 1_000_000 == 0);
        prop_assert_eq!(hint::wait(asked, &Jitter::None, &Chance::fixed(draw)), asked);
    }

    #[test]
    fn draws_stay_in_their_range(draw: u64, max: u64, range in durations()) {
        let chance = Chance::fixed(draw);
        prop_assert!(chance.up_to(max) <= max);
        prop_assert!(chance.duration_up_to(range) <= range);
    }

    #[test]
    fn causes_have_one_order(a in causes(), b in causes()) {
        prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
        prop_assert_eq!(a == b, a.cmp(&b).is_eq());
    }
}
