use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn refused(config: BreakerConfig) -> &'static str {
    config.check().err().expect("out of bounds").what()
}

// Semantics row 35: what is configured is used, and nonsense is named.
#[test]
fn each_bound_is_checked_and_named() {
    let config = BreakerConfig::new;
    assert_eq!(refused(config().failures(0)), "failures");
    assert_eq!(refused(config().probes_at_once(0)), "probes_at_once");
    assert_eq!(refused(config().close_after(0)), "close_after");
    assert_eq!(refused(config().reopen_after(0)), "reopen_after");
    assert_eq!(refused(config().hold(Duration::ZERO)), "hold");
    assert_eq!(refused(config().max_hold(Duration::ZERO)), "max_hold");
    for growth in [0.0, 0.999, 1000.1, f64::NAN, f64::INFINITY, -2.0] {
        assert_eq!(refused(config().growth(growth)), "growth");
    }
    for jitter in [-0.1, 1.1, f64::NAN] {
        assert_eq!(refused(config().jitter(jitter)), "jitter");
    }
    for rule in [
        Rule::rate(0.0, 1, SECOND),
        Rule::rate(-0.5, 1, SECOND),
        Rule::rate(1.01, 1, SECOND),
        Rule::rate(f64::NAN, 1, SECOND),
    ] {
        assert_eq!(refused(config().rule(rule)), "share of a rule");
    }
    for rule in [Rule::rate(0.5, 0, SECOND), Rule::rate_of_last(0.5, 11, 10)] {
        assert_eq!(refused(config().rule(rule)), "min_calls of a rule");
    }
    for rule in [Rule::number(0, SECOND), Rule::number_of_last(11, 10)] {
        assert_eq!(refused(config().rule(rule)), "failures of a rule");
    }
    for last in [0, 10_001] {
        let rule = Rule::rate_of_last(0.5, 1, last);
        assert_eq!(refused(config().rule(rule)), "last calls of a rule");
    }
    let short = Duration::from_millis(9);
    for rule in [
        Rule::rate(0.5, 1, short),
        Rule::slow(SECOND, 0.5, 1, short),
        Rule::number_of_last(1, 1).within(short),
        Rule::brownout().within(Duration::ZERO),
    ] {
        assert_eq!(refused(config().rule(rule)), "time of a rule");
    }
    assert_eq!(refused(config().rules([])), "rules");
    let two = [Rule::brownout(), Rule::brownout()];
    assert_eq!(refused(config().rules(two)), "rules");
    let below = Duration::from_millis(4999);
    assert_eq!(refused(config().max_open_time(below)), "max_open_time");
}

#[test]
fn the_defaults_are_within_their_bounds() {
    let checked = BreakerConfig::new().check().unwrap();
    assert_eq!(checked.rules, BreakerConfig::defaults().rules);
    assert_eq!((checked.rules.growth, checked.rules.jitter), (2000, 200));
}

#[test]
fn a_long_open_time_lifts_the_default_cap() {
    let config = BreakerConfig::new().open_time(Duration::from_secs(120));
    let rules = config.check().unwrap().rules;
    assert_eq!(rules.max_open_time, rules.open_time);
    assert!(
        BreakerConfig::new()
            .open_time(Duration::MAX)
            .check()
            .is_ok()
    );
    assert!(
        BreakerConfig::new()
            .open_time(Duration::ZERO)
            .check()
            .is_ok()
    );
}
