//! What of a configuration is wrong, beyond what its types say, and what is odd.

mod advice;
mod chains;
mod figures;
mod gateway;
mod targets;

use std::{fmt, time::Duration};

use super::Config;

pub(crate) use self::targets::{holds_a_secret, is_address};

/// A value that is wrong, or odd.
#[derive(Debug)]
pub(super) struct Remark {
    /// The keys that lead to it.
    pub(super) path: Vec<String>,
    said: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path.join("."), self.said)
    }
}

/// All that was found.
#[derive(Default)]
struct Found(Vec<Remark>);

impl Found {
    fn say(&mut self, path: &[&str], said: impl Into<String>) {
        self.0.push(Remark {
            path: path.iter().map(|key| (*key).to_owned()).collect(),
            said: said.into(),
        });
    }

    fn ensure(&mut self, holds: bool, path: &[&str], must: &str) {
        if !holds {
            self.say(path, format!("must {must}"));
        }
    }

    fn at_least_one(&mut self, n: u64, path: &[&str]) {
        self.ensure(n >= 1, path, "be at least 1");
    }

    fn at_least_a_moment(&mut self, time: Duration, path: &[&str]) {
        self.ensure(time >= MS, path, "be at least 1ms");
    }
}

const MS: Duration = Duration::from_millis(1);

impl Config {
    /// What is wrong: it cannot be used.
    pub(super) fn wrong(&self) -> Vec<Remark> {
        let mut found = Found::default();
        self.check_figures(&mut found);
        self.check_gateway(&mut found);
        self.check_targets(&mut found);
        self.check_chains(&mut found);
        found.0
    }
}
