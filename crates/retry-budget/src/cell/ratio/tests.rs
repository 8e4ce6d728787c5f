use proptest::prelude::*;

use super::*;
use crate::cell::{TOKEN, testing::at_once};

const SECOND: u64 = 1_000_000_000;
const TTL: u64 = 10 * SECOND;

fn cell(deposit: u64, reserve: u64) -> Cell {
    Cell::new(Rules {
        deposit,
        reserve: reserve * TOKEN,
        ttl: TTL,
        prices: Prices::EQUAL,
    })
}

fn grants(cell: &Cell, now: u64) -> u64 {
    (0..)
        .take_while(|_| cell.withdraw(Charge::Transient, now).is_some())
        .count() as u64
}

fn tokens(cell: &Cell, now: u64) -> u64 {
    cell.account(now).balance / TOKEN
}

/// Row 19: the budget starves at low traffic.
#[test]
fn row_19_one_request_a_minute_still_has_its_retry() {
    let cell = cell(TOKEN / 5, 10);
    for minute in 0..100 {
        let now = minute * 60 * SECOND;
        cell.deposit(now);
        assert!(
            cell.withdraw(Charge::Transient, now).is_some(),
            "minute {minute}"
        );
    }
}

/// Row 20: tokens never come back, and retries stop for ever.
#[test]
fn row_20_10_000_failing_then_one_healthy_period() {
    let cell = cell(TOKEN / 5, 10);
    let mut granted = 0;
    for call in 0..10_000 {
        let now = call * SECOND / 1000;
        cell.deposit(now);
        granted += grants(&cell, now);
    }
    // A fifth of the calls, and the reserve once: all within one window.
    assert_eq!(granted, 2010);
    let now = 10 * SECOND + TTL;
    assert_eq!(tokens(&cell, now), 10, "the reserve is back");
    assert_eq!(grants(&cell, now), 10);
}

/// Row 22: a fraction lost: the ratio holds exactly, whatever it is.
#[test]
fn row_22_fractions_of_tokens_add_up() {
    for (deposit, granted) in [
        (TOKEN / 10, 1000),
        (3 * TOKEN / 10, 3000),
        (3 * TOKEN / 4, 7500),
        (99 * TOKEN / 100, 9900),
        (100, 1),
    ] {
        let cell = cell(deposit, 0);
        let mut all = 0;
        for _ in 0..10_000 {
            cell.deposit(0);
            all += grants(&cell, 0);
        }
        assert_eq!(all, granted, "{deposit} micro-tokens each");
    }
}

/// Row 22: refilled twice by two who come at once.
#[test]
fn row_22_200_threads_refill_once() {
    let cell = cell(0, 10);
    assert_eq!(grants(&cell, 0), 10);
    assert_eq!(
        at_once(200, || u64::from(
            cell.withdraw(Charge::Transient, TTL).is_some()
        )),
        10
    );
}

/// Row 23: check, then subtract.
#[test]
fn row_23_64_threads_over_a_floor_of_10_get_exactly_10() {
    for _ in 0..20 {
        let cell = cell(0, 10);
        assert_eq!(at_once(64, || grants(&cell, 0)), 10);
    }
}

#[test]
fn what_is_given_back_is_there_again_and_denials_are_free() {
    let cell = cell(0, 1);
    let receipt = cell.withdraw(Charge::Transient, 0).unwrap();
    for _ in 0..100 {
        assert!(cell.withdraw(Charge::Transient, 0).is_none());
    }
    cell.give_back(receipt);
    assert_eq!((tokens(&cell, 0), grants(&cell, 0)), (1, 1));
    let account = cell.account(0);
    assert_eq!((account.granted, account.denied), (1, 102 - 1));
}

#[test]
fn what_left_the_window_is_not_given_back_twice() {
    let cell = cell(0, 1);
    let receipt = cell.withdraw(Charge::Transient, 0).unwrap();
    assert_eq!(tokens(&cell, TTL), 1, "it came back with the window");
    let again = cell.withdraw(Charge::Transient, TTL).unwrap();
    assert_ne!(again, receipt);
    cell.give_back(receipt);
    assert_eq!(tokens(&cell, TTL), 0);
}

#[test]
fn a_deposit_is_gone_after_the_ttl() {
    let cell = cell(TOKEN, 0);
    cell.deposit(0);
    assert_eq!(tokens(&cell, TTL - 1), 1);
    assert_eq!(tokens(&cell, TTL), 0);
}

#[test]
fn a_clock_that_stands_goes_back_or_jumps() {
    let days = 60 * 86_400 * SECOND;
    let cell = cell(TOKEN, 2);
    cell.deposit(days);
    assert_eq!(grants(&cell, days), 3);
    // Back: neither older nor newer tokens.
    for back in [days - 1, days - TTL, 1, 0] {
        assert_eq!(grants(&cell, back), 0);
    }
    cell.deposit(0);
    assert_eq!(
        grants(&cell, days),
        1,
        "a deposit of the past is one of now"
    );
    // Standing still.
    assert_eq!(grants(&cell, days), 0);
    // Beyond any u32 of slots, and to the end of time.
    assert_eq!(grants(&cell, days * 100), 2);
    assert_eq!(grants(&cell, u64::MAX), 2);
    cell.deposit(u64::MAX);
    assert_eq!(grants(&cell, u64::MAX), 1);
}

#[test]
fn extreme_rules_do_not_overflow() {
    let cell = Cell::new(Rules {
        deposit: u64::MAX,
        reserve: u64::MAX,
        ttl: 1,
        prices: Prices::EQUAL,
    });
    for now in [0, 1, u64::MAX] {
        cell.deposit(now);
        cell.deposit(now);
        assert!(cell.withdraw(Charge::Transient, now).is_some());
        assert!(cell.account(now).balance >= u64::MAX - TOKEN);
    }
}

#[test]
fn idle_is_what_a_fresh_one_would_be() {
    let cell = cell(TOKEN / 5, 10);
    assert!(cell.is_idle(0));
    cell.deposit(0);
    assert!(!cell.is_idle(TTL - 1));
    assert!(cell.is_idle(TTL));
}

/// Weights: each kind takes its own, and gives its own back.
#[test]
fn each_kind_takes_its_price_and_gives_it_back() {
    let prices = Prices {
        throttled: TOKEN / 2,
        transient: TOKEN,
        timed_out: 2 * TOKEN,
        hedge: 3 * TOKEN,
    };
    for now in [0, TTL, 1 << 62, u64::MAX] {
        let cell = Cell::new(Rules {
            deposit: 0,
            reserve: 3 * TOKEN,
            ttl: TTL,
            prices,
        });
        for charge in Charge::ALL {
            let receipt = cell.withdraw(charge, now).unwrap();
            let left = 3 * TOKEN - prices.of(charge);
            assert_eq!(cell.account(now).balance, left, "{charge:?}");
            cell.give_back(receipt);
            assert_eq!(cell.account(now).balance, 3 * TOKEN, "{charge:?}");
        }
        assert!(cell.withdraw(Charge::Transient, now).is_some());
        assert!(cell.withdraw(Charge::Hedge, now).is_none(), "2 of 3 left");
        assert!(cell.withdraw(Charge::TimedOut, now).is_some());
        assert!(cell.withdraw(Charge::Throttled, now).is_none());
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Deposit,
    Withdraw,
    GiveBack(usize),
    Pass(u64),
}

/// A step from two drawn numbers: cheaper to draw than one of several strategies.
fn op(kind: u8, n: u32) -> Op {
    let up_to = |most: u64| most / 1000 * u64::from(n % 1000);
    match kind % 15 {
        0..4 => Op::Deposit,
        4..10 => Op::Withdraw,
        10 => Op::GiveBack(n as usize),
        11..14 => Op::Pass(up_to(TTL / 3)),
        _ => Op::Pass(up_to(3 * TTL)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2600))]

    /// Against a list of all that happened; and never more than deposits and reserves allow.
    #[test]
    fn agrees_with_a_ledger_of_entries_and_never_over_grants(
        deposit in 0..2 * TOKEN,
        reserve in 0u64..12,
        ops in prop::collection::vec(any::<(u8, u32)>(), 1..40),
    ) {
        let cell = cell(deposit, reserve);
        let slots = SLOTS as u64;
        let width = TTL / slots;
        let (mut now, mut entries, mut out) = (0u64, Vec::<(u64, i128)>::new(), Vec::new());
        let (mut deposited, mut used) = (0u128, 0u128);
        for (kind, n) in ops {
            let op = op(kind, n);
            let index = now / width;
            let live: i128 = entries.iter().filter(|(i, _)| index - i < slots).map(|(_, n)| n).sum();
            let balance = (i128::from(reserve * TOKEN) + live).max(0);
            prop_assert_eq!(i128::from(cell.account(now).balance), balance);
            match op {
                Op::Pass(by) => now += by,
                Op::Deposit => {
                    cell.deposit(now);
                    entries.push((index, i128::from(deposit)));
                    deposited += u128::from(deposit);
                }
                Op::Withdraw => {
                    let receipt = cell.withdraw(Charge::Transient, now);
                    prop_assert_eq!(receipt.is_some(), balance >= i128::from(TOKEN));
                    if let Some(receipt) = receipt {
                        entries.push((index, -i128::from(TOKEN)));
                        out.push((receipt, entries.len() - 1));
                        used += u128::from(TOKEN);
                    }
                }
                Op::GiveBack(n) if !out.is_empty() => {
                    let (receipt, entry) = out.swap_remove(n % out.len());
                    cell.give_back(receipt);
                    entries[entry].1 = 0;
                    used -= u128::from(TOKEN);
                }
                Op::GiveBack(_) => {}
            }
            // A window spans at least nine slots.
            let windows = u128::from(now / (width * (slots - 1)) + 1);
            prop_assert!(used <= deposited + windows * u128::from(reserve * TOKEN));
        }
    }
}
