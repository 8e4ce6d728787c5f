use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

fn all() -> Vec<Jitter> {
    let spreads = [
        Spread::percent(1),
        Spread::percent(99),
        Spread::percent(100),
        Spread::amount(Duration::from_nanos(1)),
        Spread::amount(3 * SECOND),
        Spread::amount(Duration::MAX),
    ];
    let spreads = spreads.map(Result::unwrap);
    let around = spreads.map(Jitter::PlusMinus);
    let above = spreads.map(Jitter::Additive);
    let plain = [
        Jitter::Full,
        Jitter::None,
        Jitter::Equal,
        Jitter::Decorrelated,
    ];
    [&plain[..], &around, &above].concat()
}

fn delay(ceiling: Duration) -> Delay {
    Delay::new(ceiling)
}

fn draw(jitter: Jitter, ceiling: Duration, draw: u64) -> Duration {
    jitter.draw(&delay(ceiling), None, &Chance::fixed(draw))
}

/// Row 15: jitter zero or lost at whole seconds.
#[test]
fn row_15_2000_draws_at_one_second_differ_and_none_is_zero() {
    for jitter in all() {
        let amount_of_1_ns = Jitter::PlusMinus(Spread::amount(Duration::from_nanos(1)).unwrap());
        let above_by_1_ns = Jitter::Additive(Spread::amount(Duration::from_nanos(1)).unwrap());
        if [Jitter::None, amount_of_1_ns, above_by_1_ns].contains(&jitter) {
            continue;
        }
        let chance = Chance::seeded(15);
        let draws: BTreeSet<_> = (0..2000)
            .map(|_| jitter.draw(&delay(SECOND), None, &chance))
            .collect();
        assert!(draws.len() > 100, "{jitter:?}: {}", draws.len());
        assert!(draws.first().unwrap() >= &MS, "{jitter:?}");
    }
    let chance = Chance::seeded(15);
    let draws: BTreeSet<_> = (0..2000)
        .map(|_| Jitter::Full.draw(&delay(SECOND), None, &chance))
        .collect();
    // Both ends are reached, so the whole range is used.
    assert!(draws.first().unwrap() < &(10 * MS) && draws.last().unwrap() > &(990 * MS));
}

/// Row 17: an empty random range panics.
#[test]
fn row_17_no_range_is_empty() {
    let bases = [Duration::ZERO, Duration::from_nanos(1), MS, Duration::MAX];
    for jitter in all() {
        for ceiling in bases {
            for cap in bases {
                for last in [None, Some(Duration::ZERO), Some(MS), Some(Duration::MAX)] {
                    for draw in [0, 1, u64::MAX] {
                        let delay = Delay::new(ceiling).cap(cap);
                        let drawn = jitter.draw(&delay, last, &Chance::fixed(draw));
                        assert!(drawn >= MS && drawn <= cap.max(MS), "{jitter:?} {delay:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_ends_of_each_range() {
    let quarter = Spread::percent(25).unwrap();
    let amount = Spread::amount(300 * MS).unwrap();
    for (jitter, from, to) in [
        (Jitter::None, 1000, 1000),
        (Jitter::Equal, 500, 1000),
        (Jitter::Decorrelated, 1000, 3000),
        (Jitter::PlusMinus(quarter), 750, 1250),
        (Jitter::PlusMinus(amount), 700, 1300),
    ] {
        let ends = [0, u64::MAX].map(|n| draw(jitter, SECOND, n));
        assert_eq!(ends, [from, to].map(|ms| ms * MS), "{jitter:?}");
    }
    for (spread, to) in [(quarter, 1250), (amount, 1300)] {
        let ends = [0, u64::MAX].map(|n| draw(Jitter::Additive(spread), SECOND, n));
        assert_eq!(ends, [SECOND + Duration::from_nanos(1), to * MS]);
    }
    // From the top.
    assert_eq!(draw(Jitter::Full, SECOND, 0), SECOND);
    assert_eq!(draw(Jitter::Full, SECOND, u64::MAX), MS);
}

#[test]
fn jitter_above_the_ceiling_is_cut_at_the_cap() {
    let wide = Spread::percent(100).unwrap();
    for jitter in [Jitter::PlusMinus(wide), Jitter::Additive(wide)] {
        let delay = Delay::new(SECOND).cap(SECOND + 200 * MS);
        let drawn = jitter.draw(&delay, None, &Chance::fixed(u64::MAX));
        assert_eq!(drawn, SECOND + 200 * MS, "{jitter:?}");
    }
}

/// A `min(cap, U(base, 3 * last))`: it grows with the waits, and may shrink.
#[test]
fn decorrelated_draws_from_the_base_to_three_times_the_last_wait() {
    let delay = Delay::new(16 * SECOND).base(SECOND).cap(20 * SECOND);
    let draw = |last, n| Jitter::Decorrelated.draw(&delay, last, &Chance::fixed(n));
    assert_eq!(draw(None, u64::MAX), 3 * SECOND);
    assert_eq!(draw(Some(4 * SECOND), 0), SECOND, "down to the base");
    assert_eq!(draw(Some(4 * SECOND), u64::MAX), 12 * SECOND);
    assert_eq!(draw(Some(19 * SECOND), u64::MAX), 20 * SECOND, "the cap");
    // A shorter wait than the base, of another schedule: the base.
    assert_eq!(draw(Some(MS), u64::MAX), SECOND);
}

#[test]
fn spreads_that_are_none_are_refused() {
    for percent in [0, 101, u32::MAX] {
        assert_eq!(Spread::percent(percent).unwrap_err().what(), "percent");
    }
    assert_eq!(Spread::amount(Duration::ZERO).unwrap_err().what(), "amount");
}

proptest! {
    #[test]
    fn a_draw_is_at_least_1_ms_and_never_above_the_cap(
        ceiling in 0u64..=u64::MAX,
        cap in 1_000_000u64..=u64::MAX,
        last in prop::option::of(any::<u64>()),
        draw in any::<u64>(),
        which in 0usize..16,
    ) {
        let jitter = all()[which];
        let cap = Duration::from_nanos(cap);
        let delay = Delay::new(Duration::from_nanos(ceiling)).cap(cap);
        let last = last.map(Duration::from_nanos);
        let drawn = jitter.draw(&delay, last, &Chance::fixed(draw));
        prop_assert!((MS..=cap).contains(&drawn), "{:?}", jitter);
    }

    /// Exact: what whole numbers give, to the nanosecond.
    #[test]
    fn percentages_are_whole_nanoseconds(ceiling in 1_000_000u64..1 << 50, percent in 1u32..=100) {
        let spread = ceiling * u64::from(percent) / 100;
        let jitter = Jitter::Additive(Spread::percent(percent).unwrap());
        let drawn = draw(jitter, Duration::from_nanos(ceiling), u64::MAX);
        prop_assert_eq!(drawn, Duration::from_nanos(ceiling + spread));
    }
}
