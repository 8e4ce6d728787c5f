use proptest::prelude::*;

use super::*;
use crate::cell::testing::at_once;

fn cell(most: u64, credit: u64) -> Cell {
    Cell::new(Rules {
        most: most * TOKEN,
        credit,
    })
}

#[test]
fn exactly_half_is_too_little() {
    for most in 1..=12 {
        let cell = cell(most, 1);
        let allowed = (1..=most)
            .take_while(|_| {
                cell.failure();
                cell.withdraw()
            })
            .count() as u64;
        // Left is `most - failures`, which must be more than half.
        assert_eq!(allowed, (most - 1) / 2, "{most}");
    }
    let cell = cell(10, 1);
    (0..5).for_each(|_| cell.failure());
    assert!(!cell.withdraw());
    cell.success();
    assert!(cell.withdraw(), "a thousandth above half");
}

#[test]
fn never_below_zero_or_above_the_most() {
    let cell = cell(3, 800);
    (0..100).for_each(|_| cell.failure());
    assert_eq!(cell.tokens(), 0);
    cell.success();
    assert_eq!(cell.tokens(), 800);
    (0..100).for_each(|_| cell.success());
    assert_eq!(cell.tokens(), 3 * TOKEN);
}

#[test]
fn threads_lose_no_change() {
    let cell = cell(1000, 500);
    at_once(8, || {
        for _ in 0..100 {
            cell.failure();
            cell.success();
        }
        0
    });
    // Never at the top or the bottom, so the sum is exact: the first change is a failure.
    assert!(
        (600_000..=600_500).contains(&cell.tokens()),
        "{}",
        cell.tokens()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2600))]

    #[test]
    fn agrees_with_one_number(
        most in 1u64..20,
        credit in 1u64..3000,
        ops in prop::collection::vec(0u8..4, 1..40),
    ) {
        let cell = cell(most, credit);
        let top = i128::from(most) * 1000;
        let mut tokens = top;
        for op in ops {
            match op {
                0 => { cell.success(); tokens = (tokens + i128::from(credit)).min(top); }
                1 => { cell.failure(); tokens = (tokens - 1000).max(0); }
                2 => prop_assert_eq!(cell.withdraw(), tokens * 2 > top),
                _ => prop_assert_eq!(cell.allows(), tokens * 2 > top),
            }
            prop_assert_eq!(i128::from(cell.tokens()), tokens);
        }
    }
}
