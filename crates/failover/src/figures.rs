//! The figures of a failover, by the `metrics` facade. See the [module docs](crate).

use metrics::{Label, counter};

pub(crate) fn hop(from: &str, to: &str, cause: &'static str) {
    let labels = vec![
        Label::new("from", from.to_owned()),
        Label::new("to", to.to_owned()),
        Label::new("cause", cause),
    ];
    counter!("spillway.failover.hops", labels).increment(1);
}

pub(crate) fn possible_duplicate(at: &str) {
    let label = Label::new("target", at.to_owned());
    counter!("spillway.possible_duplicates", vec![label]).increment(1);
}
