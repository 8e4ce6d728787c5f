use std::time::Duration;

use tokio::time::advance;
use tower_circuit_breaker::{Breaker, BreakerConfig, Rule, State};

use crate::support::SECOND;

const DAY: Duration = Duration::from_secs(86_400);

/// Every rule and every time of a configuration as long, or as short, as it may be.
fn all(time: Duration, window: Duration) -> BreakerConfig {
    BreakerConfig::new()
        .rules([
            Rule::run(2),
            Rule::rate(1.0, 1000, window),
            Rule::number(1000, window),
            Rule::number_of_last(10_000, 10_000).within(window),
            Rule::slow(time, 1.0, 1000, window),
            Rule::brownout().within(window),
        ])
        .open_time(time)
        .max_open_time(time)
        .growth(1000.0)
        .jitter(1.0)
        .ramp(time)
        .trip_on_hint(time)
        .abandoned_after(time)
}

// Rows 9, 14 and 32: the longest and the shortest of everything, on a clock that jumps and on one
// that stands still: no panic, and somebody can always close it.
#[tokio::test(start_paused = true)]
async fn rows_9_14_and_32_the_longest_and_the_shortest_times() {
    let shortest = Duration::from_millis(10);
    for (time, window) in [
        (Duration::MAX, Duration::MAX),
        (Duration::ZERO, shortest),
        (Duration::from_nanos(1), shortest),
    ] {
        for jump in [Duration::ZERO, 400 * DAY] {
            let breaker = Breaker::new("extreme", all(time, window)).unwrap();
            for round in 0..20 {
                advance(jump).await;
                match breaker.permit() {
                    Ok(permit) if round % 3 == 0 => permit.success(),
                    Ok(permit) => permit.failure(),
                    Err(refused) => {
                        assert!(refused.wait().is_none_or(|wait| wait > Duration::ZERO))
                    }
                }
                let _ = breaker.snapshot();
            }
            assert!(breaker.snapshot().trips > 0);
            breaker.force_open_for(Duration::MAX);
            assert_eq!(breaker.state(), State::Open);
            breaker.force_open_for(Duration::ZERO);
            assert_eq!(breaker.state(), State::HalfOpen);
            breaker.force_close();
            breaker.permit().unwrap().success();
        }
    }
}

// Row 9: a laptop that slept for days over a window, an open time and a probe.
#[tokio::test(start_paused = true)]
async fn row_9_days_pass_between_two_calls() {
    let rate = Rule::rate(0.5, 4, 30 * SECOND);
    let breaker = Breaker::new("opus", BreakerConfig::new().rules([rate])).unwrap();
    for _ in 0..3 {
        breaker.permit().unwrap().failure();
    }
    advance(3 * DAY).await;
    breaker.permit().unwrap().failure();
    assert_eq!(breaker.snapshot().bad_calls, 1, "the others are long over");
    for _ in 0..3 {
        breaker.permit().unwrap().failure();
    }
    assert_eq!(breaker.state(), State::Open);
    advance(3 * DAY).await;
    let hung = breaker.permit().unwrap();
    advance(3 * DAY).await;
    breaker.permit().unwrap().success();
    hung.success();
    assert_eq!(breaker.state(), State::Closed);
}
