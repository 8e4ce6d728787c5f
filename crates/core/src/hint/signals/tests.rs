use super::*;
use http::{HeaderName, HeaderValue};
use proptest::prelude::*;
use std::time::Duration;

const NOW: Duration = Duration::from_secs(1_445_412_480); // Wed, 21 Oct 2015 07:28:00 GMT

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + NOW
}

fn headers(fields: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_bytes(value.as_bytes()).unwrap(),
        );
    }
    headers
}

fn signals(status: u16, fields: &[(&str, &str)]) -> Signals {
    super::read(StatusCode::from_u16(status).unwrap(), &headers(fields), now)
}

fn read(fields: &[(&str, &str)]) -> Option<Hint> {
    signals(429, fields).hint()
}

fn ms(fields: &[(&str, &str)]) -> Option<u128> {
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
        "-5", "+5", "", "soon", "nan", "inf", "1e3", "5s", "5,6", ".5", "1.", "1.2.3", "0x10", "１",
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
    let past = ("retry-after", "Wed, 21 Oct 2015 07:00:00 GMT");
    assert_eq!(ms(&[past]), None, "a past date asks for nothing");
    assert_eq!(ms(&[past, ("ratelimit", "\"a\";r=0;t=5")]), Some(5000));
}

#[test]
fn first_usable_line_counts() {
    assert_eq!(
        ms(&[("retry-after", "soon"), ("retry-after", "3")]),
        Some(3000)
    );
    let mut headers = HeaderMap::new();
    headers.insert("retry-after", HeaderValue::from_bytes(b"\xff").unwrap());
    let status = StatusCode::TOO_MANY_REQUESTS;
    assert_eq!(super::read(status, &headers, now), Signals::default());
}

/// Strongest first: with all of them sent the first wins, without it the second, and so on.
#[test]
fn precedence() {
    let all = [
        ("grpc-retry-pushback-ms", "1", Source::GrpcPushback),
        ("retry-after-ms", "2", Source::RetryAfterMs),
        ("x-ms-retry-after-ms", "3", Source::XMsRetryAfterMs),
        ("retry-after", "4", Source::RetryAfterSeconds),
        ("ratelimit", "\"a\";r=0;t=5", Source::RateLimit),
        ("x-ratelimit-reset", "6", Source::Reset("x-ratelimit-reset")),
    ];
    for from in 0..all.len() {
        let fields: Vec<_> = all[from..].iter().map(|(n, v, _)| (*n, *v)).collect();
        assert_eq!(read(&fields).unwrap().source(), Some(all[from].2));
    }
    assert!(
        all.windows(2).all(|two| two[0].2.rank() <= two[1].2.rank()),
        "the ranks agree"
    );
    let window = [
        ("ratelimit", "\"a\";r=0"),
        ("ratelimit-policy", "\"a\";q=5;w=60"),
    ];
    assert_eq!(
        read(&window).unwrap().source(),
        Some(Source::RateLimitWindow)
    );
    let with_reset = [window[0], window[1], ("x-ratelimit-reset", "6")];
    assert_eq!(ms(&with_reset), Some(6000));
}

#[test]
fn body_hints_go_between_by_rank() {
    let body = |field| {
        Some(Hint::After {
            wait: Duration::from_millis(77),
            source: Source::Body(field),
        })
    };
    let reset = signals(429, &[("x-ratelimit-reset", "6")]);
    assert_eq!(reset.or(body("x")).hint(), body("x"));
    assert_eq!(reset.or(body("x")).or(body("y")).hint(), body("x"));
    let limit = signals(429, &[("ratelimit", "\"a\";r=0;t=5")]);
    assert_eq!(limit.or(body("x")), limit);
    assert_eq!(limit.or(None), limit);
    let zero = signals(429, &[("retry-after", "0")]);
    assert_eq!(zero.or(body("x")).hint(), body("x"));
    assert_eq!(limit.or(Some(Hint::Never)).hint(), Some(Hint::Never));
    let forbidden = signals(429, &[("x-should-retry", "false")]);
    assert_eq!(forbidden.or(body("x")).hint(), Some(Hint::Never));
    assert_eq!(forbidden.or(body("x")).asked(), body("x"));
}

#[test]
fn never_beats_any_wait() {
    let fields = [("x-should-retry", "False"), ("retry-after", "5")];
    assert_eq!(read(&fields), Some(Hint::Never));
    let asked = signals(429, &fields).asked();
    assert_eq!(asked.and_then(Hint::after), Some(Duration::from_secs(5)));
    let fields = [("grpc-retry-pushback-ms", "-1"), ("x-should-retry", "true")];
    assert_eq!(read(&fields), Some(Hint::Never));
    assert!(!signals(429, &fields).invites());
    let both = [("x-should-retry", "true"), ("x-should-retry", "false")];
    assert_eq!(read(&both), Some(Hint::Never));
    assert!(signals(400, &[("x-should-retry", "true")]).invites());
    assert_eq!(
        signals(400, &[("x-should-retry", "yes")]),
        Signals::default()
    );
}

#[test]
fn buckets_count_only_with_429_and_when_used_up_with_403() {
    let empty = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "30")];
    for status in [400, 401, 500, 503, 529] {
        assert_eq!(signals(status, &empty), Signals::default(), "{status}");
    }
    for status in [403, 429] {
        assert!(signals(status, &empty).exhausted());
        assert!(signals(status, &empty).hint().is_some());
    }
    assert_eq!(signals(403, &empty[1..]), Signals::default());
    assert!(signals(429, &empty[1..]).hint().is_some());
}

#[test]
fn a_success_is_held_by_rate_limit_alone() {
    let held = |fields: &[_]| on_success(&headers(fields)).and_then(Hint::after);
    let limit = [("ratelimit", "\"default\";r=0;t=50")];
    assert_eq!(held(&limit), Some(Duration::from_secs(50)));
    for other in [
        ("ratelimit", "\"default\";r=1;t=50"),
        ("ratelimit", "\"default\";r=0"),
        ("retry-after", "50"),
        ("x-ratelimit-reset", "50"),
        ("anthropic-ratelimit-tokens-reset", "2016-09-27T12:00:59Z"),
    ] {
        let fields = [
            other,
            ("x-ratelimit-remaining", "0"),
            ("anthropic-ratelimit-tokens-remaining", "0"),
        ];
        assert_eq!(held(&fields), None, "{other:?}");
    }
}

/// Header fields that the readers know, and values near those that they read.
fn field() -> impl Strategy<Value = (&'static str, Vec<u8>)> {
    let name = prop::sample::select(vec![
        "retry-after",
        "retry-after-ms",
        "x-ms-retry-after-ms",
        "date",
        "ratelimit",
        "ratelimit-policy",
        "ratelimit-reset",
        "ratelimit-remaining",
        "x-ratelimit-reset",
        "x-ratelimit-reset-after",
        "x-ratelimit-remaining",
        "x-ratelimit-reset-tokens",
        "x-ratelimit-remaining-tokens",
        "anthropic-ratelimit-requests-reset",
        "anthropic-ratelimit-requests-remaining",
        "anthropic-ratelimit-unified-5h-status",
        "anthropic-ratelimit-unified-5h-reset",
        "grpc-retry-pushback-ms",
        "grpc-status",
        "x-should-retry",
    ]);
    let value = prop_oneof![
        prop::collection::vec(0x20u8..=0xff, 0..100),
        "[0-9:;,.=TZ+ \"a-z-]{0,70}".prop_map(String::into_bytes),
        "(0|[0-9]{1,30}(\\.[0-9]{1,30})?(ms|s|m|h)?)".prop_map(String::into_bytes),
    ];
    (name, value)
}

proptest! {
    #[test]
    fn total(status in 100u16..1000, fields in prop::collection::vec(field(), 0..20), at in 0u64..1 << 40) {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                headers.append(name, value);
            }
        }
        let status = StatusCode::from_u16(status).unwrap();
        let now = || SystemTime::UNIX_EPOCH + Duration::from_secs(at);
        let signals = super::read(status, &headers, now);
        for hint in [signals.asked(), on_success(&headers)].into_iter().flatten() {
            let wait = hint.after().unwrap();
            prop_assert!(wait == Duration::MAX || wait.subsec_nanos() % 1_000_000 == 0);
        }
    }

    #[test]
    fn later_dates_ask_for_longer(a in 0u64..2_000_000_000, b in 0u64..2_000_000_000) {
        let wait = |ahead: u64| {
            let date = httpdate::fmt_http_date(now() + Duration::from_secs(ahead));
            ms(&[("retry-after", &date)])
        };
        prop_assert_eq!(wait(a), Some(u128::from(a) * 1000));
        prop_assert_eq!(a <= b, wait(a) <= wait(b));
    }
}
