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
