//! One warning for what only a person can mend.

use std::{
    collections::HashSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use tower_spillway_core::TargetName;

use crate::{Remedy, Ruling};

/// Beyond so many targets, the further ones share one entry.
const MOST_TARGETS: usize = 256;

/// What one layer warned of. A success of a target takes its warnings back.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    // So that a success, of which there are many, takes no lock.
    any: AtomicBool,
    raised: Mutex<HashSet<(Option<TargetName>, Remedy)>>,
}

impl Alarms {
    /// Warns, unless it did so since the target's last success.
    pub(crate) fn raise(&self, target: Option<&TargetName>, verdict: &Ruling, status: u16) {
        let Some(remedy) = verdict.remedy() else {
            return;
        };
        let fresh = {
            let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
            let key = match raised.len() < MOST_TARGETS {
                true => target.cloned(),
                false => None,
            };
            self.any.store(true, Ordering::Relaxed);
            raised.insert((key, remedy))
        };
        if fresh {
            tracing::warn!(
                spillway.target = target.map(TargetName::as_str),
                spillway.reason = verdict.reason(),
                spillway.remedy = remedy.as_str(),
                http.response.status_code = status,
                "a target serves nobody until somebody acts: {}",
                remedy.advice(),
            );
        }
    }

    /// The target works again.
    pub(crate) fn succeeded(&self, target: Option<&TargetName>) {
        if !self.any.load(Ordering::Relaxed) {
            return;
        }
        let mut raised = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
        raised.retain(|(raised, _)| raised.as_ref() != target);
        self.any.store(!raised.is_empty(), Ordering::Relaxed);
    }
}
