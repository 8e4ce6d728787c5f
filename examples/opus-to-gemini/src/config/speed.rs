//! The same stack on a faster clock.

use std::time::Duration;

use super::{Breaker, Config};

impl Config {
    /// All durations divided by `speed`, to play an incident faster. At 0 nothing is divided.
    #[must_use]
    pub fn at_speed(mut self, speed: u32) -> Self {
        let by = speed.max(1);
        let slower = |d: &mut Duration| *d /= by;
        let call = [
            &mut self.call.plain_deadline,
            &mut self.call.streaming_deadline,
            &mut self.backoff.max_total_wait,
            &mut self.stream.total,
            &mut self.batch.give_up_after,
        ];
        call.into_iter().flatten().for_each(slower);
        [
            &mut self.failover.patience,
            &mut self.failover.ready_within,
            &mut self.backoff.base,
            &mut self.backoff.cap,
            &mut self.retry_after.longest_wait,
            &mut self.stream.idle,
            &mut self.retry_after.max_hold,
            &mut self.batch.requeue_base,
            &mut self.batch.requeue_cap,
            &mut self.budget.ttl,
        ]
        .into_iter()
        .for_each(slower);
        // A budget counts in whole seconds at least.
        self.budget.ttl = self.budget.ttl.max(Duration::from_secs(1));
        let breaker = |breaker: &mut Breaker| {
            breaker.open /= by;
            breaker.max_open /= by;
            breaker.abandoned_after /= by;
            breaker.ramp /= by;
            breaker.probe_every /= by;
            // The least that a breaker looks back on.
            breaker.within = (breaker.within / by).max(Duration::from_millis(10));
        };
        breaker(&mut self.breaker);
        for target in self.targets.values_mut() {
            target.plain_within /= by;
            target.streaming_within /= by;
            target.breaker.iter_mut().for_each(breaker);
        }
        self
    }
}
