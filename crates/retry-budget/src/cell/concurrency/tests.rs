use proptest::prelude::*;

use super::*;
use crate::cell::testing::at_once;

fn cell(percent: u32, least: u32) -> Cell {
    Cell::new(Rules { percent, least })
}

fn grants(cell: &Cell) -> u64 {
    (0..).take_while(|_| cell.withdraw()).count() as u64
}

#[test]
fn a_share_rounded_down_and_never_less_than_the_least() {
    let cell = cell(20, 3);
    for (calls, limit) in [
        (0, 3),
        (14, 3),
        (19, 3),
        (20, 4),
        (25, 5),
        (u32::MAX, 858_993_459),
    ] {
        assert_eq!(
            cell.limit(Load { calls, retries: 0 }),
            limit,
            "{calls} calls"
        );
    }
}

/// Row 23: check, then subtract.
#[test]
fn row_23_64_threads_get_exactly_what_is_allowed() {
    for _ in 0..20 {
        let cell = cell(20, 10);
        assert_eq!(at_once(64, || grants(&cell)), 10);
        assert_eq!(cell.load().retries, 10);
    }
}

/// Threads come, retry and go: at no moment more out than the largest load allows, and nothing left.
#[test]
fn threads_that_come_and_go_leave_nothing_and_pass_no_limit() {
    let cell = cell(50, 1);
    let used = at_once(8, || {
        let mut used = 0;
        for round in 0..2000 {
            cell.enter();
            if cell.withdraw() {
                // At most 8 calls.
                assert!(cell.load().retries <= 4);
                let unused = round % 2 == 0;
                cell.end(unused);
                used += u64::from(!unused);
            }
            cell.leave();
        }
        used
    });
    assert!(used > 0);
    assert_eq!(cell.load().word(), 0);
    assert_eq!(cell.account().granted, used);
}

/// Whoever misuses the gate gets no budget without a limit.
#[test]
fn what_never_came_cannot_leave() {
    let cell = cell(100, 0);
    cell.leave();
    cell.end(false);
    assert_eq!(cell.load().word(), 0);
    assert!(!cell.withdraw());
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Enter,
    Leave,
    Withdraw,
    End(bool),
}

/// A step from two drawn numbers: cheaper to draw than one of several strategies.
fn op(kind: u8, n: u32) -> Op {
    match kind % 15 {
        0..4 => Op::Enter,
        4..7 => Op::Leave,
        7..12 => Op::Withdraw,
        _ => Op::End(n % 2 == 0),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2600))]

    /// Against two numbers; and never more out than the share of that moment.
    #[test]
    fn agrees_with_two_numbers(
        percent in 0u32..=100,
        least in 0u32..5,
        ops in prop::collection::vec(any::<(u8, u32)>(), 1..40),
    ) {
        let cell = cell(percent, least);
        let (mut calls, mut out, mut granted, mut denied) = (0u32, 0u32, 0u64, 0u64);
        for (kind, n) in ops {
            let op = op(kind, n);
            match op {
                Op::Enter => { cell.enter(); calls += 1; }
                Op::Leave if calls > 0 => { cell.leave(); calls -= 1; }
                Op::Withdraw => {
                    let limit = (f64::from(calls) * f64::from(percent) / 100.0 + 1e-9) as u32;
                    let allowed = out < limit.max(least);
                    prop_assert_eq!(cell.withdraw(), allowed);
                    out += u32::from(allowed);
                    granted += u64::from(allowed);
                    denied += u64::from(!allowed);
                }
                Op::End(unused) if out > 0 => {
                    cell.end(unused);
                    out -= 1;
                    granted -= u64::from(unused);
                }
                Op::Leave | Op::End(_) => {}
            }
            prop_assert_eq!(cell.load(), Load { calls, retries: out });
            let account = cell.account();
            prop_assert_eq!((account.granted, account.denied), (granted, denied));
        }
    }
}
