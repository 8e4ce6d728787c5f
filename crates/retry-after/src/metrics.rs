//! What the shared hold counts, with the feature `metrics`: through the facade of that name. The
//! feature turns on what the engine counts, too, see [`tower_spillway_core::metrics`].
//!
//! | name | kind | labels | what |
//! |---|---|---|---|
//! | `spillway.holds` | counter | `target`, `event` | a hold `began`, was `extended`, was `released` by hand, or was seen to be `over` |
//! | `spillway.hold.refused` | counter | `target` | calls that were held: refused here, unsent |
//!
//! `describe_metrics` tells a recorder what they are. An exporter for Prometheus may add `_total` to the
//! names of counters.
//!
//! `target` is the name of the target below a failover, else empty; the keys that holds are kept by
//! are in no label.

#[cfg(not(feature = "metrics"))]
mod emit {
    pub(crate) fn hold(_target: Option<&str>, _event: &'static str) {}

    pub(crate) fn refused(_target: Option<&str>) {}
}

#[cfg(feature = "metrics")]
mod emit {
    use metrics::{Label, counter};

    pub(crate) fn hold(target: Option<&str>, event: &'static str) {
        let labels = vec![of(target), Label::from_static_parts("event", event)];
        counter!("spillway.holds", labels).increment(1);
    }

    pub(crate) fn refused(target: Option<&str>) {
        counter!("spillway.hold.refused", vec![of(target)]).increment(1);
    }

    fn of(target: Option<&str>) -> Label {
        match target {
            Some(target) => Label::new("target", target.to_owned()),
            None => Label::from_static_parts("target", ""),
        }
    }
}

pub(crate) use emit::{hold, refused};

/// Tells the recorder in force what each of these is, for exporters that show it (`HELP` of
/// Prometheus). Those of the engine are told by
/// [its own](tower_spillway_core::metrics::describe_metrics). To be called once, after the recorder is
/// installed.
#[cfg(feature = "metrics")]
pub fn describe_metrics() {
    use metrics::describe_counter;

    describe_counter!(
        "spillway.holds",
        "What happened to holds: began, extended, released by hand, over."
    );
    describe_counter!(
        "spillway.hold.refused",
        "Calls that were held: refused here, unsent."
    );
}
