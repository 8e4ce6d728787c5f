//! How a breaker is set up.

mod rule;

use std::{fmt, sync::Arc, time::Duration};

use tower_spillway_core::{Chance, InvalidConfig};

pub use self::rule::Rule;
use crate::{
    control::Control,
    event::{Callback, Event},
    machine::{Rules, THOUSAND},
};

/// When a breaker opens, for how long, and what closes it again.
///
/// Values are checked where the breaker is made: [`CircuitBreakerLayer::with_config`] and
/// [`Breaker::new`] give an [`InvalidConfig`] that names the bound.
///
/// | setting | default | bound |
/// |---|---|---|
/// | [`rules`](Self::rules) | [`Rule::run`] of 5, [`Rule::rate`] of 50 % of at least 20 calls in 30 s | at least one; each as it says |
/// | [`open_time`](Self::open_time) | 5 s | any |
/// | [`max_open_time`](Self::max_open_time) | 60 s, or the open time if that is longer | at least the open time |
/// | [`growth`](Self::growth) | 2 | 1 to 1000 |
/// | [`jitter`](Self::jitter) | 0.2 | 0 to 1 |
/// | [`probes_at_once`](Self::probes_at_once) | 1 | at least 1 |
/// | [`close_after`](Self::close_after) | 2 | at least 1 |
/// | [`reopen_after`](Self::reopen_after) | 1 | at least 1 |
/// | [`trip_on_hint`](Self::trip_on_hint) | 60 s | any |
/// | [`hold`](Self::hold) | 60 s | more than 0 |
/// | [`max_hold`](Self::max_hold) | 15 min | more than 0 |
/// | [`abandoned_after`](Self::abandoned_after) | 5 s | any |
/// | [`ramp`](Self::ramp) | none | any |
///
/// [`CircuitBreakerLayer::with_config`]: crate::CircuitBreakerLayer::with_config
/// [`Breaker::new`]: crate::Breaker::new
#[derive(Clone)]
pub struct BreakerConfig {
    rules: Vec<Rule>,
    open_time: Duration,
    max_open_time: Option<Duration>,
    growth: f64,
    jitter: f64,
    probes_at_once: u32,
    close_after: u32,
    reopen_after: u32,
    trip_on_hint: Duration,
    hold: Duration,
    max_hold: Duration,
    abandoned_after: Duration,
    ramp: Duration,
    chance: Chance,
    on_event: Option<Callback>,
    control: Option<Control>,
}

const MAX_OPEN_TIME: Duration = Duration::from_secs(60);

impl Default for BreakerConfig {
    fn default() -> Self {
        Self {
            rules: rule::defaults(),
            open_time: Duration::from_secs(5),
            max_open_time: None,
            growth: 2.0,
            jitter: 0.2,
            probes_at_once: 1,
            close_after: 2,
            reopen_after: 1,
            trip_on_hint: Duration::from_secs(60),
            hold: Duration::from_secs(60),
            max_hold: Duration::from_secs(15 * 60),
            abandoned_after: Duration::from_secs(5),
            ramp: Duration::ZERO,
            chance: Chance::thread(),
            on_event: None,
            control: None,
        }
    }
}

impl BreakerConfig {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens at the first of these rules that is reached, in the place of all others. Of two that
    /// are reached by one call a run is named, else the one that stands first.
    #[must_use]
    pub fn rules(mut self, rules: impl IntoIterator<Item = Rule>) -> Self {
        self.rules = rules.into_iter().collect();
        self
    }

    /// Opens at this rule too.
    #[must_use]
    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Opens after so many failures with no success between: [`Rule::run`], in the place of another
    /// run. The other rules stay.
    #[must_use]
    pub fn failures(mut self, in_a_row: u32) -> Self {
        rule::set_run(&mut self.rules, in_a_row);
        self
    }

    /// How long it is open the first time. Zero lets the next call be a probe.
    #[must_use]
    pub fn open_time(mut self, time: Duration) -> Self {
        self.open_time = time;
        self
    }

    /// The open time grows to this at most, before jitter.
    #[must_use]
    pub fn max_open_time(mut self, time: Duration) -> Self {
        self.max_open_time = Some(time);
        self
    }

    /// The open time is multiplied by this each time that probes fail, and starts again when the
    /// breaker closes. Counted in thousandths.
    #[must_use]
    pub fn growth(mut self, factor: f64) -> Self {
        self.growth = factor;
        self
    }

    /// Up to this share of an open time is added to it, also to the longest, so that many clients
    /// do not probe at one moment. Counted in thousandths.
    #[must_use]
    pub fn jitter(mut self, share: f64) -> Self {
        self.jitter = share;
        self
    }

    /// How many probes may be out at once while half-open.
    #[must_use]
    pub fn probes_at_once(mut self, probes: u32) -> Self {
        self.probes_at_once = probes;
        self
    }

    /// So many successful probes close it.
    #[must_use]
    pub fn close_after(mut self, successes: u32) -> Self {
        self.close_after = successes;
        self
    }

    /// So many failed probes reopen it. A rate-limited probe is a failed one.
    #[must_use]
    pub fn reopen_after(mut self, failures: u32) -> Self {
        self.reopen_after = failures;
        self
    }

    /// A vendor's hint above this opens it at once, for as long as the hint says. Only readings
    /// from a vendor's own table count ([`Reading::is_vendor`]).
    ///
    /// [`Reading::is_vendor`]: tower_spillway_core::Reading::is_vendor
    #[must_use]
    pub fn trip_on_hint(mut self, longest: Duration) -> Self {
        self.trip_on_hint = longest;
        self
    }

    /// How long a target that says it is down is left alone, where it does not say for how long.
    #[must_use]
    pub fn hold(mut self, time: Duration) -> Self {
        self.hold = time;
        self
    }

    /// No hint keeps it open for longer than this.
    #[must_use]
    pub fn max_hold(mut self, time: Duration) -> Self {
        self.max_hold = time;
        self
    }

    /// An attempt that the call's deadline cut off is a failure if it had been under way for
    /// longer than this.
    #[must_use]
    pub fn abandoned_after(mut self, time: Duration) -> Self {
        self.abandoned_after = time;
        self
    }

    /// For so long after probes closed it only a share of calls is admitted, which rises from a
    /// tenth to all of them; the rest is refused ([`Refusal::Ramping`]) and goes to the next target
    /// for free. 30 s is a good value; zero for none. A breaker that is closed by hand, or reset,
    /// admits all.
    ///
    /// [`Refusal::Ramping`]: crate::Refusal::Ramping
    #[must_use]
    pub fn ramp(mut self, time: Duration) -> Self {
        self.ramp = time;
        self
    }

    /// Calls `callback` with each change of state, in order, when it has happened and no lock is
    /// held: it may look at the breaker and change it, and what it changes is told after it
    /// returned. It runs in the call that caused the change, so it should be quick;
    /// [`Breaker::events`](crate::Breaker::events) hands events to another task.
    #[must_use]
    pub fn on_event(mut self, callback: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.on_event = Some(Arc::new(callback));
        self
    }

    /// Every breaker that is made of this joins `control`.
    #[must_use]
    pub fn control(mut self, control: &Control) -> Self {
        self.control = Some(control.clone());
        self
    }

    /// Where jitter is drawn from, and which calls a ramp admits.
    #[must_use]
    pub fn chance(mut self, chance: Chance) -> Self {
        self.chance = chance;
        self
    }

    pub(crate) fn check(self) -> Result<Checked, InvalidConfig> {
        rule::check(&self.rules)?;
        ensure(
            self.longest() >= nanos(self.open_time),
            "max_open_time",
            "at least open_time",
        )?;
        // Ranges, so that NaN is in none.
        ensure(
            (1.0..=1000.0).contains(&self.growth),
            "growth",
            "from 1 to 1000",
        )?;
        ensure((0.0..=1.0).contains(&self.jitter), "jitter", "from 0 to 1")?;
        ensure(self.probes_at_once >= 1, "probes_at_once", "at least 1")?;
        ensure(self.close_after >= 1, "close_after", "at least 1")?;
        ensure(self.reopen_after >= 1, "reopen_after", "at least 1")?;
        ensure(!self.hold.is_zero(), "hold", "more than 0")?;
        ensure(!self.max_hold.is_zero(), "max_hold", "more than 0")?;
        Ok(self.settled())
    }

    /// The defaults, which are within their bounds.
    pub(crate) fn defaults() -> Checked {
        Self::default().settled()
    }

    fn longest(&self) -> u64 {
        match self.max_open_time {
            Some(max) => nanos(max),
            None => nanos(MAX_OPEN_TIME).max(nanos(self.open_time)),
        }
    }

    fn settled(self) -> Checked {
        let mut rules = Rules {
            failures: 0,
            windows: Vec::new(),
            spans: Vec::new(),
            brownout: None,
            open_time: nanos(self.open_time),
            max_open_time: self.longest(),
            growth: thousandths(self.growth),
            jitter: thousandths(self.jitter),
            concurrent: self.probes_at_once,
            close_after: self.close_after,
            reopen_after: self.reopen_after,
            max_hold: nanos(self.max_hold),
            ramp: nanos(self.ramp),
        };
        rule::settle(&self.rules, &mut rules);
        Checked {
            rules: Arc::new(rules),
            trip_on_hint: self.trip_on_hint,
            hold: self.hold,
            abandoned_after: self.abandoned_after,
            chance: self.chance,
            on_event: self.on_event,
            control: self.control,
            secret_names: false,
        }
    }
}

impl fmt::Debug for BreakerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BreakerConfig")
            .field("rules", &self.rules)
            .field("open_time", &self.open_time)
            .field("max_open_time", &self.max_open_time)
            .field("growth", &self.growth)
            .field("jitter", &self.jitter)
            .field("probes_at_once", &self.probes_at_once)
            .field("close_after", &self.close_after)
            .field("reopen_after", &self.reopen_after)
            .field("ramp", &self.ramp)
            .finish_non_exhaustive()
    }
}

/// What is left of a configuration once it is checked.
#[derive(Clone)]
pub(crate) struct Checked {
    pub(crate) rules: Arc<Rules>,
    pub(crate) trip_on_hint: Duration,
    pub(crate) hold: Duration,
    pub(crate) abandoned_after: Duration,
    pub(crate) chance: Chance,
    pub(crate) on_event: Option<Callback>,
    pub(crate) control: Option<Control>,
    /// Names of breakers are keys of requests, which go in no event and no metric.
    pub(crate) secret_names: bool,
}

pub(crate) fn ensure(
    holds: bool,
    what: &'static str,
    bound: &'static str,
) -> Result<(), InvalidConfig> {
    if holds {
        Ok(())
    } else {
        Err(InvalidConfig::new(what, bound))
    }
}

/// Whole nanoseconds, at most `u64::MAX` (584 years).
pub(crate) fn nanos(time: Duration) -> u64 {
    let seconds = time.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(u64::from(time.subsec_nanos()))
}

/// In bounds already, so that the cast neither cuts nor wraps.
fn thousandths(factor: f64) -> u32 {
    (factor * f64::from(THOUSAND)).round() as u32
}

#[cfg(test)]
mod tests;
