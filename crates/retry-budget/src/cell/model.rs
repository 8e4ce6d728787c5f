//! Every interleaving of grants and refunds, by a model checker. The command is in `sync.rs`.

use loom::{sync::Arc, thread};

use super::{Charge, Dated, Prices, TOKEN, concurrency, cost, ratio, score};

/// Runs both at once, in every order; gives what they gave.
fn both<C, A, B>(
    cell: &Arc<C>,
    a: impl FnOnce(&C) -> A + Send + 'static,
    b: impl FnOnce(&C) -> B,
) -> (A, B)
where
    C: Send + Sync + 'static,
    A: Send + 'static,
{
    let other = {
        let cell = Arc::clone(cell);
        thread::spawn(move || a(&cell))
    };
    let b = b(cell);
    (other.join().unwrap(), b)
}

fn ratio_of(deposit: u64, reserve: u64) -> Arc<ratio::Cell> {
    Arc::new(ratio::Cell::new(ratio::Rules {
        deposit,
        reserve: reserve * TOKEN,
        ttl: 10,
        prices: Prices::EQUAL,
    }))
}

#[test]
fn model_of_a_ratio_one_token_goes_to_one() {
    loom::model(|| {
        let cell = ratio_of(0, 1);
        let take = |cell: &ratio::Cell| cell.withdraw(Charge::Transient, 0).is_some();
        let (a, b) = both(&cell, take, take);
        assert!(a != b, "one of two");
        let account = cell.account(0);
        assert_eq!((account.granted, account.denied), (1, 1));
        assert_eq!(account.balance, 0);
    });
}

#[test]
fn model_of_a_ratio_refund_and_grant() {
    loom::model(|| {
        let cell = ratio_of(TOKEN, 1);
        let give = |cell: &ratio::Cell| {
            let receipt = cell.withdraw(Charge::Hedge, 0);
            receipt.into_iter().for_each(|r| cell.give_back(r));
        };
        let (_, kept) = both(&cell, give, |cell| {
            cell.deposit(0);
            cell.withdraw(Charge::Transient, 0)
        });
        // Its own deposit pays for it, whatever the other holds at that moment.
        assert!(kept.is_some());
        assert_eq!(cell.account(0).balance, TOKEN);
        assert_eq!(cell.account(0).granted, 1);
    });
}

/// While one moves the window, the other gives back what left it: nothing twice.
#[test]
fn model_of_a_ratio_refund_and_the_end_of_the_window() {
    loom::model(|| {
        let cell = ratio_of(0, 1);
        let receipt = cell.withdraw(Charge::Transient, 0).unwrap();
        let give = move |cell: &ratio::Cell| cell.give_back(receipt);
        let ((), late) = both(&cell, give, |cell| cell.withdraw(Charge::Transient, 10));
        assert!(late.is_some());
        assert!(cell.withdraw(Charge::Transient, 10).is_none());
    });
}

#[test]
fn model_of_a_concurrency_never_more_out_than_allowed() {
    loom::model(|| {
        let cell = Arc::new(concurrency::Cell::new(concurrency::Rules {
            percent: 100,
            least: 0,
        }));
        cell.enter();
        let go = |cell: &concurrency::Cell| {
            let granted = cell.withdraw();
            if granted {
                let load = cell.load();
                assert!(load.retries <= 1, "{load:?}");
                cell.end(false);
            }
            granted
        };
        let (a, b) = both(&cell, go, go);
        assert!(a || b, "one at least");
        cell.leave();
        assert_eq!(cell.load().word(), 0);
    });
}

/// The end of a call takes the share with it: who is granted was so under the load of that moment.
#[test]
fn model_of_a_concurrency_grant_and_leave() {
    loom::model(|| {
        let cell = Arc::new(concurrency::Cell::new(concurrency::Rules {
            percent: 100,
            least: 0,
        }));
        cell.enter();
        let ((), granted) = both(&cell, concurrency::Cell::leave, |cell| cell.withdraw());
        assert_eq!(cell.load().retries, u32::from(granted));
        assert!(!cell.withdraw(), "no call, no retry");
        if granted {
            cell.end(true);
        }
        assert_eq!(cell.load().word(), 0);
        assert_eq!(cell.account().granted, 0);
    });
}

#[test]
fn model_of_a_cost_grant_and_refund() {
    loom::model(|| {
        let cell = Arc::new(cost::Cell::new(cost::Rules {
            capacity: 2 * TOKEN,
            start: TOKEN,
            credit: 0,
            refill: 0,
            prices: Prices::EQUAL,
        }));
        let go = |cell: &cost::Cell| {
            let receipt = cell.withdraw(Charge::Transient, 0);
            receipt.into_iter().for_each(|r| cell.give_back(r, true));
            receipt.is_some()
        };
        let (a, b) = both(&cell, go, go);
        assert!(a || b);
        let account = cell.account(0);
        assert_eq!((account.balance, account.granted), (TOKEN, 0));
    });
}

/// Of two who come after a while at once one fills.
#[test]
fn model_of_a_cost_one_refill() {
    loom::model(|| {
        let cell = Arc::new(cost::Cell::new(cost::Rules {
            capacity: 10 * TOKEN,
            start: 0,
            credit: 0,
            refill: TOKEN,
            prices: Prices::EQUAL,
        }));
        let take = |cell: &cost::Cell| cell.withdraw(Charge::Transient, 1_000_000_000).is_some();
        let (a, b) = both(&cell, take, take);
        assert!(a != b);
    });
}

#[test]
fn model_of_a_score_loses_no_change() {
    loom::model(|| {
        let cell = Arc::new(score::Cell::new(score::Rules {
            most: 4 * score::TOKEN,
            credit: 500,
        }));
        cell.failure();
        both(&cell, score::Cell::failure, score::Cell::success);
        assert_eq!(cell.tokens(), 2500);
        assert!(cell.withdraw());
    });
}
