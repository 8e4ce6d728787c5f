//! One control over many breakers.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::breaker::{Breaker, WeakBreaker};

/// One control over many breakers: what is done to it is done to each.
///
/// A breaker joins by its configuration ([`BreakerConfig::control`]) or by [`add`](Self::add). One
/// that joins while the control holds the others forced open, disabled or to counting begins so.
///
/// # Clone
///
/// Clones are the same control.
///
/// [`BreakerConfig::control`]: crate::BreakerConfig::control
#[derive(Clone, Default)]
pub struct Control(Arc<Mutex<Members>>);

#[derive(Default)]
struct Members {
    breakers: Vec<WeakBreaker>,
    standing: Option<Standing>,
}

/// What holds until somebody says otherwise, for those who join too.
#[derive(Clone, Copy)]
enum Standing {
    ForcedOpen,
    Disabled,
    MetricsOnly,
}

impl Control {
    /// A control over no breaker yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a breaker, which the control does not keep alive.
    pub fn add(&self, breaker: &Breaker) {
        let mut members = self.lock();
        members.breakers.retain(WeakBreaker::is_alive);
        members.breakers.push(breaker.downgrade());
        let standing = members.standing;
        drop(members);
        match standing {
            Some(Standing::ForcedOpen) => breaker.force_open(),
            Some(Standing::Disabled) => breaker.disable(),
            Some(Standing::MetricsOnly) => breaker.metrics_only(),
            None => (),
        }
    }

    /// [`Breaker::force_open`] for each.
    pub fn force_open(&self) {
        self.each(Some(Standing::ForcedOpen), Breaker::force_open);
    }

    /// [`Breaker::force_open_for`] for each.
    pub fn force_open_for(&self, time: Duration) {
        self.each(None, |breaker| breaker.force_open_for(time));
    }

    /// [`Breaker::force_close`] for each.
    pub fn force_close(&self) {
        self.each(None, Breaker::force_close);
    }

    /// [`Breaker::reset`] for each.
    pub fn reset(&self) {
        self.each(None, Breaker::reset);
    }

    /// [`Breaker::disable`] for each.
    pub fn disable(&self) {
        self.each(Some(Standing::Disabled), Breaker::disable);
    }

    /// [`Breaker::metrics_only`] for each.
    pub fn metrics_only(&self) {
        self.each(Some(Standing::MetricsOnly), Breaker::metrics_only);
    }

    /// The breakers that are alive.
    pub fn breakers(&self) -> Vec<Breaker> {
        let members = self.lock();
        let alive = members.breakers.iter();
        alive.filter_map(WeakBreaker::upgrade).collect()
    }

    fn each(&self, standing: Option<Standing>, does: impl Fn(&Breaker)) {
        self.lock().standing = standing;
        // With no lock held: a breaker calls back.
        for breaker in self.breakers() {
            does(&breaker);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control")
            .field("breakers", &self.lock().breakers.len())
            .finish_non_exhaustive()
    }
}
