use proptest::prelude::*;

use super::*;
use crate::cell::{TOKEN, testing::at_once};

const SECOND: u64 = 1_000_000_000;

const PRICES: Prices = Prices {
    throttled: 5 * TOKEN,
    transient: 14 * TOKEN,
    timed_out: 10 * TOKEN,
    hedge: TOKEN,
};

fn rules(capacity: u64) -> Rules {
    Rules {
        capacity: capacity * TOKEN,
        start: capacity * TOKEN,
        credit: TOKEN,
        refill: 0,
        prices: PRICES,
    }
}

fn tokens(cell: &Cell, now: u64) -> u64 {
    cell.account(now).balance / TOKEN
}

#[test]
fn each_kind_pays_its_price_and_gets_it_back() {
    let cell = Cell::new(rules(500));
    for charge in Charge::ALL {
        let receipt = cell.withdraw(charge, 0).unwrap();
        assert_eq!(cell.account(0).balance, 500 * TOKEN - PRICES.of(charge));
        cell.give_back(receipt, false);
        assert_eq!(tokens(&cell, 0), 500);
    }
}

#[test]
fn a_price_is_paid_whole_or_not_at_all() {
    let cell = Cell::new(rules(15));
    assert!(cell.withdraw(Charge::Transient, 0).is_some());
    for _ in 0..10 {
        assert!(cell.withdraw(Charge::Throttled, 0).is_none());
    }
    assert_eq!(tokens(&cell, 0), 1, "denials are free");
    assert!(cell.withdraw(Charge::Hedge, 0).is_some());
    let account = cell.account(0);
    assert_eq!((account.granted, account.denied), (2, 10));
}

/// Row 20: tokens are never given back, and retries stop for ever.
#[test]
fn row_20_10_000_failing_then_a_healthy_period() {
    let cell = Cell::new(rules(500));
    let granted = (0..10_000).filter(|_| cell.withdraw(Charge::Transient, 0).is_some());
    assert_eq!(granted.count(), 35);
    for _ in 0..10_000 {
        cell.first_success(0);
    }
    assert_eq!(tokens(&cell, 0), 500);
}

/// Row 22: a fraction lost, or refilled twice by two who come at once.
#[test]
fn row_22_200_threads_refill_once() {
    let cell = Cell::new(Rules {
        start: 0,
        refill: TOKEN,
        ..rules(100)
    });
    let granted = at_once(200, || {
        u64::from(cell.withdraw(Charge::Hedge, 10 * SECOND).is_some())
    });
    assert_eq!(granted, 10);
}

#[test]
fn row_22_slow_refills_keep_every_fraction() {
    // A micro-token each second, looked at 3 times a second: nothing is lost by looking.
    let cell = Cell::new(Rules {
        start: 0,
        refill: 1,
        ..rules(100)
    });
    for look in 1..=3_000 {
        cell.account(look * SECOND / 3);
    }
    assert_eq!(cell.account(1000 * SECOND).balance, 1000);
}

/// Row 23: check, then subtract.
#[test]
fn row_23_64_threads_get_exactly_what_is_there() {
    for _ in 0..20 {
        let cell = Cell::new(rules(50));
        let granted = at_once(64, || {
            u64::from(cell.withdraw(Charge::Throttled, 0).is_some())
        });
        assert_eq!((granted, tokens(&cell, 0)), (10, 0));
    }
}

#[test]
fn a_clock_that_stands_goes_back_or_jumps() {
    let cell = Cell::new(Rules {
        start: 0,
        refill: TOKEN,
        ..rules(100)
    });
    assert_eq!(tokens(&cell, 10 * SECOND), 10);
    for now in [10 * SECOND, 5 * SECOND, 0] {
        assert_eq!(tokens(&cell, now), 10, "standing or going back");
    }
    assert_eq!(tokens(&cell, 11 * SECOND), 11, "nothing twice");
    for now in [60 * 86_400 * SECOND, u64::MAX] {
        assert_eq!(tokens(&cell, now), 100, "days, and the end of time");
        assert!(cell.withdraw(Charge::Transient, now).is_some());
    }
}

#[test]
fn extreme_rules_do_not_overflow() {
    let cell = Cell::new(Rules {
        capacity: u64::MAX,
        start: u64::MAX,
        credit: u64::MAX,
        refill: u64::MAX,
        prices: Prices::EQUAL,
    });
    for now in [0, 1, u64::MAX] {
        cell.first_success(now);
        let receipt = cell.withdraw(Charge::Hedge, now).unwrap();
        cell.give_back(receipt, false);
        assert_eq!(cell.account(now).balance, u64::MAX);
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    FirstSuccess,
    Withdraw(u8),
    GiveBack(usize, bool),
    Pass(u64),
}

/// A step from two drawn numbers: cheaper to draw than one of several strategies.
fn op(kind: u8, n: u32) -> Op {
    match kind % 16 {
        0..4 => Op::FirstSuccess,
        4..10 => Op::Withdraw((n % 4) as u8),
        10..13 => Op::GiveBack(n as usize / 2, n % 2 == 0),
        13..15 => Op::Pass(u64::from(n) % 1000 * 3_000_001),
        _ => Op::Pass(u64::from(n) * 230_000),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2600))]

    /// Against one number in billionths of micro-tokens.
    #[test]
    fn agrees_with_one_number(
        capacity in 14u64..600,
        start in 0u64..600,
        credit in 0..2 * TOKEN,
        refill in prop_oneof![Just(0), 0..10 * TOKEN],
        ops in prop::collection::vec(any::<(u8, u32)>(), 1..40),
    ) {
        let cell = Cell::new(Rules {
            capacity: capacity * TOKEN,
            start: start * TOKEN,
            credit,
            refill,
            prices: PRICES,
        });
        let unit = u128::from(SECOND);
        let most = u128::from(capacity * TOKEN) * unit;
        let mut level = (u128::from(start * TOKEN) * unit).min(most);
        let (mut now, mut out) = (0u64, Vec::new());
        for (kind, n) in ops {
            let op = op(kind, n);
            match op {
                Op::Pass(by) => {
                    now += by;
                    level = (level + u128::from(by) * u128::from(refill)).min(most);
                }
                Op::FirstSuccess => {
                    cell.first_success(now);
                    level = (level + u128::from(credit) * unit).min(most);
                }
                Op::Withdraw(kind) => {
                    let charge = Charge::of_bits(kind.into());
                    let price = u128::from(PRICES.of(charge)) * unit;
                    let receipt = cell.withdraw(charge, now);
                    prop_assert_eq!(receipt.is_some(), level >= price);
                    if let Some(receipt) = receipt {
                        level -= price;
                        out.push((receipt, price));
                    }
                }
                Op::GiveBack(n, unused) if !out.is_empty() => {
                    let (receipt, price) = out.swap_remove(n % out.len());
                    cell.account(now);
                    cell.give_back(receipt, unused);
                    level = (level + price).min(most);
                }
                Op::GiveBack(..) => {}
            }
            prop_assert_eq!(u128::from(cell.account(now).balance), level / unit);
        }
    }
}
