//! How the ceiling of a delay grows from step to step.

use std::time::Duration;

use tower_spillway_core::InvalidConfig;

/// How the ceiling of a delay grows from step to step. Steps count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Schedule {
    /// The same at every step.
    Constant(Constant),
    /// The same more at every step, up to a cap.
    Linear(Linear),
    /// A base, multiplied at every step, up to a cap.
    Exponential(Exponential),
}

impl Default for Schedule {
    /// [`Exponential::default`].
    fn default() -> Self {
        Self::Exponential(Exponential::default())
    }
}

impl Schedule {
    /// The ceiling at a step: never above [`cap`](Self::cap), and non-decreasing.
    pub fn ceiling(&self, step: u32) -> Duration {
        match self {
            Self::Constant(schedule) => schedule.delay.min(schedule.cap),
            Self::Linear(schedule) => schedule.ceiling(step),
            Self::Exponential(schedule) => schedule.ceiling(step),
        }
    }

    /// The longest delay. It bounds the schedule only, never a hint of the server.
    pub fn cap(&self) -> Duration {
        match self {
            Self::Constant(schedule) => schedule.cap,
            Self::Linear(schedule) => schedule.cap,
            Self::Exponential(schedule) => schedule.cap,
        }
    }

    /// The same schedule with another cap.
    ///
    /// # Errors
    ///
    /// `cap` at least 1 ms; of an exponential schedule not below its base.
    pub fn with_cap(self, cap: Duration) -> Result<Self, InvalidConfig> {
        check_cap(cap)?;
        Ok(match self {
            Self::Constant(schedule) => Self::Constant(Constant { cap, ..schedule }),
            Self::Linear(schedule) => Self::Linear(Linear { cap, ..schedule }),
            Self::Exponential(schedule) => Self::Exponential(schedule.with_cap(cap)?),
        })
    }
}

impl From<Constant> for Schedule {
    fn from(schedule: Constant) -> Self {
        Self::Constant(schedule)
    }
}

impl From<Linear> for Schedule {
    fn from(schedule: Linear) -> Self {
        Self::Linear(schedule)
    }
}

impl From<Exponential> for Schedule {
    fn from(schedule: Exponential) -> Self {
        Self::Exponential(schedule)
    }
}

/// The same ceiling at every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constant {
    delay: Duration,
    cap: Duration,
}

impl Constant {
    /// `delay` at every step.
    ///
    /// # Errors
    ///
    /// `delay` above zero.
    pub fn new(delay: Duration) -> Result<Self, InvalidConfig> {
        if delay.is_zero() {
            return Err(InvalidConfig::new("delay", "above zero"));
        }
        Ok(Self {
            delay,
            cap: delay.max(LEAST_CAP),
        })
    }
}

/// The same more at every step, up to a cap: `delay`, twice `delay`, three times `delay`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    delay: Duration,
    cap: Duration,
}

impl Linear {
    /// `delay` at first, and so much more at every step, up to `cap`.
    ///
    /// # Errors
    ///
    /// `delay` above zero; `cap` at least 1 ms. One below `delay` cuts every step.
    pub fn new(delay: Duration, cap: Duration) -> Result<Self, InvalidConfig> {
        if delay.is_zero() {
            return Err(InvalidConfig::new("delay", "above zero"));
        }
        check_cap(cap)?;
        Ok(Self { delay, cap })
    }

    /// `delay * (step + 1)`, up to the cap.
    fn ceiling(&self, step: u32) -> Duration {
        // At most 2^94 * 2^32, which a u128 holds.
        duration(self.delay.as_nanos() * (u128::from(step) + 1)).min(self.cap)
    }
}

/// A base, multiplied at every step, up to a cap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exponential {
    base: Duration,
    cap: Duration,
    numerator: u32,
    denominator: u32,
}

impl Default for Exponential {
    /// 100 ms doubling up to 20 s (the cap of the AWS SDKs).
    fn default() -> Self {
        Self {
            base: Duration::from_millis(100),
            cap: Duration::from_secs(20),
            numerator: 2,
            denominator: 1,
        }
    }
}

/// Drawn delays are at least 1 ms, so a lower cap could not be kept.
const LEAST_CAP: Duration = Duration::from_millis(1);

fn check_cap(cap: Duration) -> Result<(), InvalidConfig> {
    if cap < LEAST_CAP {
        return Err(InvalidConfig::new("cap", "at least 1 ms"));
    }
    Ok(())
}

impl Exponential {
    /// `base`, doubling up to `cap`.
    ///
    /// # Errors
    ///
    /// `base` above zero; `cap` at least 1 ms and not below `base`.
    pub fn new(base: Duration, cap: Duration) -> Result<Self, InvalidConfig> {
        if base.is_zero() {
            return Err(InvalidConfig::new("base", "above zero"));
        }
        Self {
            base,
            ..Self::default()
        }
        .with_cap(cap)
    }

    fn with_cap(self, cap: Duration) -> Result<Self, InvalidConfig> {
        check_cap(cap)?;
        if cap < self.base {
            return Err(InvalidConfig::new("cap", "not below the base"));
        }
        Ok(Self { cap, ..self })
    }

    /// Multiplies by `numerator / denominator` at every step, for instance `(3, 2)`; 2 by default.
    ///
    /// # Errors
    ///
    /// Exactly 1 (the base at every step), or from 1.01 to 1000.
    pub fn multiplier(self, numerator: u32, denominator: u32) -> Result<Self, InvalidConfig> {
        let (n, d) = (u64::from(numerator), u64::from(denominator));
        // From 1.01, so that any cap is reached within a few thousand steps.
        let grows = n * 100 >= d * 101 && n <= d * 1000;
        if d == 0 || !(n == d || grows) {
            return Err(InvalidConfig::new("multiplier", "1, or from 1.01 to 1000"));
        }
        Ok(Self {
            numerator,
            denominator,
            ..self
        })
    }

    /// `base * multiplier^step` in whole nanoseconds, up to the cap.
    fn ceiling(&self, step: u32) -> Duration {
        let cap = self.cap.as_nanos();
        let (times, over) = (u128::from(self.numerator), u128::from(self.denominator));
        if times == over {
            return self.base;
        }
        // A fraction, exact while it fits, so that thirds and halves do not gather rounding.
        let (mut above, mut below) = (self.base.as_nanos(), 1u128);
        // Not step by step to the end: `step` may be u32::MAX, the cap comes long before.
        for _ in 0..step {
            if above / below >= cap {
                return self.cap;
            }
            (above, below) = match (above.checked_mul(times), below.checked_mul(over)) {
                (Some(above), Some(below)) => (above, below),
                _ => (above.div_ceil(below).saturating_mul(times), over),
            };
        }
        duration(above / below).min(self.cap)
    }
}

/// Saturating, since `Duration::from_nanos` takes only a u64.
pub(crate) fn duration(nanos: u128) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    match (u64::try_from(nanos / SECOND), u32::try_from(nanos % SECOND)) {
        (Ok(secs), Ok(nanos)) => Duration::new(secs, nanos),
        _ => Duration::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    fn exponential(base: Duration, cap: Duration) -> Schedule {
        Exponential::new(base, cap).unwrap().into()
    }

    /// Row 13: a shift or a float wraps, panics or gives a tiny delay at a high attempt.
    #[test]
    fn row_13_high_steps_stay_at_the_cap() {
        for (base, cap) in [
            (100 * MS, Duration::from_secs(20)),
            (Duration::from_nanos(1), MS),
            (MS, MS),
            (86_400_000 * MS, Duration::MAX),
            (Duration::MAX, Duration::MAX),
        ] {
            let schedule = exponential(base, cap);
            for attempt in [1024, 100_001, u32::MAX - 1, u32::MAX] {
                assert_eq!(schedule.ceiling(attempt - 1), cap, "{base:?} {attempt}");
            }
        }
        let schedule = exponential(100 * MS, Duration::from_secs(20));
        for attempt in (31..=34).chain(63..=66) {
            assert_eq!(schedule.ceiling(attempt - 1), Duration::from_secs(20));
        }
    }

    #[test]
    fn doubles_exactly_up_to_the_cap() {
        let schedule = Schedule::default();
        let ceilings: Vec<_> = (0..10).map(|n| schedule.ceiling(n).as_millis()).collect();
        assert_eq!(
            ceilings,
            [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 20_000, 20_000]
        );
    }

    #[test]
    fn halves_and_thirds_do_not_gather_rounding() {
        let schedule = Exponential::new(500 * MS, Duration::MAX)
            .unwrap()
            .multiplier(3, 2)
            .unwrap();
        assert_eq!(schedule.ceiling(2), 1125 * MS);
        // 500 ms * 1.5^20 = 1662628.36503982...
        assert_eq!(schedule.ceiling(20).as_nanos(), 1_662_628_365_039);
        let schedule = Exponential::new(3 * MS, Duration::MAX)
            .unwrap()
            .multiplier(4, 3)
            .unwrap();
        assert_eq!(schedule.ceiling(1), 4 * MS);
    }

    #[test]
    fn linear_grows_by_the_same_up_to_the_cap_and_never_overflows() {
        let linear = |delay, cap| Schedule::from(Linear::new(delay, cap).unwrap());
        let schedule = linear(300 * MS, 1000 * MS);
        let ceilings: Vec<_> = (0..5).map(|n| schedule.ceiling(n).as_millis()).collect();
        assert_eq!(ceilings, [300, 600, 900, 1000, 1000]);
        assert_eq!(linear(10_000 * MS, 1000 * MS).ceiling(0), 1000 * MS);
        for step in [0, 1, u32::MAX] {
            assert_eq!(
                linear(Duration::MAX, Duration::MAX).ceiling(step),
                Duration::MAX
            );
        }
        let refused = |delay, cap| Linear::new(delay, cap).unwrap_err().what();
        assert_eq!(refused(Duration::ZERO, MS), "delay");
        assert_eq!(refused(MS, MS / 2), "cap");
        let cut = linear(MS, MS).with_cap(Duration::ZERO);
        assert_eq!(cut.unwrap_err().what(), "cap");
    }

    #[test]
    fn a_multiplier_of_one_keeps_the_base() {
        let schedule = Exponential::new(200 * MS, 1000 * MS)
            .unwrap()
            .multiplier(7, 7)
            .unwrap();
        assert_eq!(schedule.ceiling(u32::MAX), 200 * MS);
    }

    #[test]
    fn a_constant_is_cut_at_its_cap() {
        let schedule: Schedule = Constant::new(10_000 * MS).unwrap().into();
        assert_eq!(schedule.ceiling(7), 10_000 * MS);
        let capped = schedule.with_cap(1000 * MS).unwrap();
        assert_eq!(capped.ceiling(7), 1000 * MS);
    }

    #[test]
    fn wrong_values_are_refused_by_name() {
        let refused = |r: Result<Schedule, InvalidConfig>| r.unwrap_err().to_string();
        let exp = |base, cap| Exponential::new(base, cap).map(Schedule::from);
        assert_eq!(refused(exp(Duration::ZERO, MS)), "base must be above zero");
        assert_eq!(
            refused(exp(3000 * MS, 2000 * MS)),
            "cap must be not below the base"
        );
        let one = Duration::from_nanos(1);
        assert_eq!(refused(exp(one, one)), "cap must be at least 1 ms");
        assert_eq!(
            refused(Constant::new(Duration::ZERO).map(Schedule::from)),
            "delay must be above zero"
        );
        for (n, d) in [
            (1, 0),
            (0, 0),
            (1, 2),
            (0, 1),
            (1001, 1),
            (1_000_001, 1_000_000),
        ] {
            let error = Exponential::default().multiplier(n, d).unwrap_err();
            assert_eq!(error.what(), "multiplier", "{n}/{d}");
        }
        for (n, d) in [
            (101, 100),
            (1000, 1),
            (u32::MAX, u32::MAX),
            (u32::MAX, u32::MAX / 2),
        ] {
            assert!(Exponential::default().multiplier(n, d).is_ok(), "{n}/{d}");
        }
    }

    proptest! {
        /// Row 13.
        #[test]
        fn row_13_never_decreases_and_never_passes_the_cap(
            base in 1u64..=u64::MAX,
            extra in 0u64..=u64::MAX,
            hundredths in 101u32..=100_000,
            step in prop_oneof![0u32..200, any::<u32>()],
        ) {
            let base = Duration::from_nanos(base);
            let cap = base.saturating_add(Duration::from_micros(extra)).max(MS);
            let schedule: Schedule = Exponential::new(base, cap)
                .unwrap()
                .multiplier(hundredths, 100)
                .unwrap()
                .into();
            let here = schedule.ceiling(step);
            prop_assert!(here >= base && here <= cap);
            prop_assert!(schedule.ceiling(step.saturating_add(1)) >= here);
            prop_assert!(here == cap || schedule.ceiling(step + 1) > here);
        }
    }
}
