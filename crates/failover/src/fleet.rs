//! The targets of a failover, shared by its clones and calls.

use std::sync::{Arc, Mutex, PoisonError};

use tower_spillway_core::{
    Carry, InvalidConfig,
    ledger::{LegPlan, Onward},
};

use crate::{
    error::NotPrepared,
    target::{Prepare, Target, Usable},
};

/// What a leg on one target starts from.
pub(crate) struct Spec<Req> {
    pub(crate) plan: Arc<LegPlan>,
    prepare: Option<Prepare<Req>>,
    inherit_credentials: bool,
}

impl<Req> Spec<Req> {
    /// Makes a pristine request fit the target.
    pub(crate) fn fit<A: Carry<Req>>(
        &self,
        adapter: &A,
        request: &mut Req,
    ) -> Result<(), NotPrepared> {
        if !self.inherit_credentials {
            adapter.strip_credentials(request);
        }
        match &self.prepare {
            Some(prepare) => prepare(request).map_err(NotPrepared::new),
            None => Ok(()),
        }
    }
}

/// Which targets are usable now.
struct Outlook(Box<[Option<Usable>]>);

impl Onward for Outlook {
    fn usable_after(&self, tried: usize) -> bool {
        self.0
            .iter()
            .skip(tried.saturating_add(1))
            .any(|usable| usable.as_ref().is_none_or(|usable| usable()))
    }
}

pub(crate) struct Fleet<S, Req> {
    pub(crate) specs: Box<[Spec<Req>]>,
    // Never polled, only cloned, when a call goes to a later target: the clean path takes no lock,
    // and a service need not be `Sync`.
    spares: Mutex<Box<[S]>>,
}

impl<S, Req> Fleet<S, Req> {
    pub(crate) fn new(
        targets: impl IntoIterator<Item = Target<S, Req>>,
    ) -> Result<Self, InvalidConfig> {
        let mut targets: Vec<_> = targets.into_iter().collect();
        for (index, target) in targets.iter().enumerate() {
            let name = target.name();
            if targets.iter().skip(index + 1).any(|t| t.name() == name) {
                return Err(InvalidConfig::new(
                    "target name",
                    "given to one target only",
                ));
            }
            if target.plan.sends_while_others == 0 {
                return Err(InvalidConfig::new("sends_while_others", "at least 1"));
            }
        }
        let usable = targets.iter_mut().map(|target| target.usable.take());
        let outlook: Arc<dyn Onward> = Arc::new(Outlook(usable.collect()));
        let (mut specs, mut services) = (Vec::new(), Vec::new());
        for (index, mut target) in targets.into_iter().enumerate() {
            target.plan.onward = Some((Arc::clone(&outlook), index));
            services.push(target.service);
            specs.push(Spec {
                plan: Arc::new(target.plan),
                prepare: target.prepare,
                inherit_credentials: target.inherit_credentials,
            });
        }
        Ok(Self {
            specs: specs.into(),
            spares: Mutex::new(services.into()),
        })
    }
}

impl<S: Clone, Req> Fleet<S, Req> {
    /// A fresh service of a target.
    pub(crate) fn service(&self, index: usize) -> Option<S> {
        let spares = self.spares.lock().unwrap_or_else(PoisonError::into_inner);
        spares.get(index).cloned()
    }
}
