//! What the server can be told.

use super::{Found, targets::looks_like_a_key};
use crate::config::Config;

impl Config {
    pub(super) fn check_gateway(&self, found: &mut Found) {
        let gateway = &self.gateway;
        found.at_least_one(gateway.max_body, &["gateway", "max_body"]);
        found.at_least_one(gateway.in_flight.into(), &["gateway", "in_flight"]);
        found.at_least_one(gateway.write_least, &["gateway", "write_least"]);
        for (time, key) in [
            (gateway.read_header_within, "read_header_within"),
            (gateway.read_body_within, "read_body_within"),
            (gateway.write_within, "write_within"),
            (gateway.min_timeout, "min_timeout"),
        ] {
            found.at_least_a_moment(time, &["gateway", key]);
        }
        found.ensure(
            gateway.max_timeout >= gateway.min_timeout,
            &["gateway", "max_timeout"],
            "be at least gateway.min_timeout",
        );
        found.ensure(
            !looks_like_a_key(&gateway.inbound_keys_env),
            &["gateway", "inbound_keys_env"],
            "be the name of a variable, not a key",
        );
    }
}
