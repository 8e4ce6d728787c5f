//! What a budget tells the metrics, if there are any.

use std::sync::OnceLock;

use tower_spillway_core::TargetName;

/// The labels of one budget.
#[derive(Debug)]
pub(crate) struct Meter {
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "a label"))]
    budget: &'static str,
    name: OnceLock<TargetName>,
}

impl Meter {
    pub(crate) fn new(budget: &'static str) -> Self {
        Self {
            budget,
            name: OnceLock::new(),
        }
    }

    pub(crate) fn name(&self, name: TargetName) {
        // The first stays.
        let _ = self.name.set(name);
    }
}

#[cfg(not(feature = "metrics"))]
impl Meter {
    pub(crate) fn asked(&self, _granted: bool) {}

    pub(crate) fn balance(&self, _balance: impl FnOnce() -> u64) {}
}

#[cfg(feature = "metrics")]
impl Meter {
    /// A retry was granted or denied.
    pub(crate) fn asked(&self, granted: bool) {
        let counter = match granted {
            true => metrics::counter!("spillway.budget.granted", self.labels()),
            false => metrics::counter!("spillway.budget.denied", self.labels()),
        };
        counter.increment(1);
    }

    /// What is left now.
    pub(crate) fn balance(&self, balance: impl FnOnce() -> u64) {
        metrics::gauge!("spillway.budget.balance", self.labels()).set(balance() as f64);
    }

    fn labels(&self) -> Vec<metrics::Label> {
        let name = match self.name.get() {
            Some(name) => metrics::Label::new("name", name.as_str().to_owned()),
            None => metrics::Label::from_static_parts("name", "unnamed"),
        };
        vec![
            metrics::Label::from_static_parts("budget", self.budget),
            name,
        ]
    }
}

/// Tells the recorder in force what each of the [figures](crate#metrics) is, for exporters that show
/// it (`HELP` of Prometheus). To be called once, after the recorder is installed.
#[cfg(feature = "metrics")]
pub fn describe_metrics() {
    use metrics::{describe_counter, describe_gauge};

    describe_counter!("spillway.budget.granted", "Retries that a budget granted.");
    describe_counter!("spillway.budget.denied", "Retries that a budget denied.");
    describe_gauge!(
        "spillway.budget.balance",
        "What is left of a retry budget, after its last change."
    );
}
