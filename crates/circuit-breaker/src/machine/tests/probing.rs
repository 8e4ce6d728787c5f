//! Probes that no user waits for.

use super::*;

impl Bench {
    /// The next probe of a prober.
    fn probe(&mut self, heard: Heard) -> Option<Transition> {
        match self.machine.order(self.now).0 {
            Order::Probe(ticket) => self.settle(ticket, heard),
            order => panic!("{order:?}"),
        }
    }

    /// How many good probes close it.
    fn good_until_closed(&mut self) -> usize {
        (1..=100)
            .find(|_| self.probe(Heard::Success).is_some())
            .unwrap()
    }

    fn trip(&mut self) {
        for _ in 0..3 {
            self.call(FAILURE);
        }
        self.now += self.open_for();
    }
}

fn probed() -> Bench {
    let mut bench = Bench::new(rules());
    bench.machine.attach_prober();
    bench
}

#[test]
fn no_user_is_a_probe_and_six_good_ones_close() {
    let mut bench = probed();
    assert_eq!(bench.machine.order(0).0, Order::Rest);
    for _ in 0..3 {
        bench.call(FAILURE);
    }
    assert_eq!(bench.machine.order(0).0, Order::Wait(5 * SECOND));
    assert_eq!(bench.acquire().unwrap_err().why, Why::Open);
    bench.now = 5 * SECOND;
    assert_eq!(bench.acquire().unwrap_err().why, Why::ProbesBusy);
    assert_eq!(bench.state(), State::HalfOpen);
    for _ in 0..5 {
        assert_eq!(bench.probe(Heard::Success), None);
        assert_eq!(bench.acquire().unwrap_err().why, Why::ProbesBusy);
    }
    assert_eq!(bench.probe(Heard::Success).unwrap().to, State::Closed);
    assert!(bench.acquire().is_ok());
}

#[test]
fn failed_probes_do_not_reopen_and_count_against_closing() {
    let mut bench = probed();
    bench.trip();
    for _ in 0..100 {
        assert_eq!(bench.probe(FAILURE), None);
    }
    assert_eq!(bench.state(), State::HalfOpen);
    // One bad one of six is four of five; the other fives have more.
    for _ in 0..4 {
        assert_eq!(bench.probe(Heard::Success), None);
    }
    assert!(bench.probe(Heard::Success).is_some());
}

#[test]
fn the_last_three_must_be_good() {
    let mut bench = probed();
    bench.trip();
    let results = [true, true, true, true, false, true, true];
    for good in results {
        let heard = if good { Heard::Success } else { FAILURE };
        assert_eq!(bench.probe(heard), None);
    }
    assert!(bench.probe(Heard::Success).is_some());
}

#[test]
fn each_recent_trip_asks_for_twice_as_many() {
    let mut bench = probed();
    for needed in [6, 12, 24, 40, 40] {
        bench.trip();
        assert_eq!(bench.good_until_closed(), needed);
    }
    bench.now += 601 * SECOND;
    bench.trip();
    assert_eq!(bench.good_until_closed(), 6, "that was long ago");
}

#[test]
fn a_target_that_says_it_is_down_is_held_all_the_same() {
    let mut bench = probed();
    bench.trip();
    let change = bench.probe(Heard::Held { time: 60_000 * MS }).unwrap();
    assert_eq!(change.reason, Some(TripReason::Held));
    assert_eq!(
        bench.machine.order(bench.now).0,
        Order::Wait(bench.now + 60 * SECOND)
    );
}

#[test]
fn the_last_prober_that_leaves_gives_half_open_back_to_users() {
    let mut bench = probed();
    bench.machine.attach_prober();
    bench.trip();
    let Order::Probe(late) = bench.machine.order(bench.now).0 else {
        panic!("no probe");
    };
    bench.machine.detach_prober();
    assert!(bench.acquire().is_err());
    bench.machine.detach_prober();
    let probe = bench.acquire().expect("a user's probe");
    bench.settle(late, Heard::Success);
    bench.settle(probe, Heard::Success);
    assert_eq!(bench.state(), State::HalfOpen, "two of the user's close");
    bench.call(Heard::Success);
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn a_prober_that_comes_while_half_open_takes_over() {
    let (mut bench, probe) = Bench::half_open(rules());
    bench.machine.attach_prober();
    assert_eq!(bench.settle(probe, FAILURE), None, "not heard any more");
    assert_eq!(bench.acquire().unwrap_err().why, Why::ProbesBusy);
    bench.machine.next_probe(bench.now + 7);
    assert_eq!(bench.acquire().unwrap_err().until, Some(bench.now + 7));
    assert_eq!(bench.good_until_closed(), 6);
}

// A target that fails half of its calls, with two seconds between probes: how soon does it close
// by luck? Two good ones in a row, the verdict over users' probes, come after 6 probes on average.
#[test]
fn a_half_broken_target_seldom_closes_by_luck() {
    let chance = Chance::seeded(7);
    let mut probes = 0;
    let mut closed = 0;
    for _ in 0..200 {
        let mut bench = probed();
        bench.trip();
        bench.now += 1;
        for _ in 0..30 {
            probes += 1;
            let heard = if chance.up_to(1) == 0 {
                Heard::Success
            } else {
                FAILURE
            };
            if bench.probe(heard).is_some() {
                closed += 1;
                break;
            }
        }
    }
    assert!(probes > 12 * closed, "{closed} times in {probes} probes");
}
