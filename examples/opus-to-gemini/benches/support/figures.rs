//! Medians and tails.

use std::time::Duration;

/// Times, in ascending order.
#[derive(Debug)]
pub struct Times(Vec<Duration>);

impl Times {
    pub fn new(mut times: Vec<Duration>) -> Self {
        assert!(!times.is_empty());
        times.sort_unstable();
        Self(times)
    }

    pub fn median(&self) -> Duration {
        self.of(50)
    }

    pub fn p99(&self) -> Duration {
        self.of(99)
    }

    /// The time that so many of a hundred do not exceed.
    fn of(&self, percent: usize) -> Duration {
        let rank = (self.0.len() * percent).div_ceil(100);
        self.0[rank.max(1) - 1]
    }

    pub fn print(&self, name: &str) {
        let [median, p90, p99] = [50, 90, 99].map(|p| ms(self.of(p)));
        println!("{name:<24} median {median:>7.3} ms   p90 {p90:>7.3}   p99 {p99:>7.3}");
    }
}

/// What one adds to the other, in milliseconds: at the median and at the 99th percentile.
pub fn added(to: &Times, by: &Times) -> (f64, f64) {
    (
        ms(by.median()) - ms(to.median()),
        ms(by.p99()) - ms(to.p99()),
    )
}

pub fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Whether a bar is met, said on a line.
pub fn bar(name: &str, is: f64, most: f64, unit: &str) -> bool {
    let met = is <= most;
    let verdict = if met { "met" } else { "MISSED" };
    println!("{name:<24} {is:>14.3} {unit}   bar {most} {unit}: {verdict}");
    met
}
