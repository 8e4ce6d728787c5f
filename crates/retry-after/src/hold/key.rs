//! Whom one answer holds.

use std::{any::type_name, fmt};

use tower_spillway_core::{Ledger, TargetName};

/// The key of a hold by target: the target's name, or none where no failover is above.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct HoldKey(Option<TargetName>);

impl HoldKey {
    /// Calls that name no target.
    pub const UNNAMED: Self = Self(None);

    /// The target.
    pub fn target(&self) -> Option<&TargetName> {
        self.0.as_ref()
    }
}

impl From<TargetName> for HoldKey {
    fn from(name: TargetName) -> Self {
        Self(Some(name))
    }
}

impl From<&str> for HoldKey {
    fn from(name: &str) -> Self {
        TargetName::from(name).into()
    }
}

impl From<String> for HoldKey {
    fn from(name: String) -> Self {
        TargetName::from(name).into()
    }
}

/// How the key of a call is found.
pub trait KeyOf<Req> {
    /// What keys look like.
    type Key;

    /// Whether the calls of one service have one key, as a rule. Then a held service is ready at
    /// once, without asking what is below it, and refuses.
    const OF_SERVICE: bool;

    /// The key of a call.
    fn key(&self, request: &Req, ledger: Option<&Ledger>) -> Self::Key;
}

/// One hold for each target.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByTarget;

impl<Req> KeyOf<Req> for ByTarget {
    type Key = HoldKey;
    const OF_SERVICE: bool = true;

    fn key(&self, _request: &Req, ledger: Option<&Ledger>) -> HoldKey {
        HoldKey(ledger.and_then(Ledger::target).cloned())
    }
}

/// One hold for each key that a function finds in the request.
#[derive(Clone, Copy)]
pub struct ByRequest<F>(pub(crate) F);

impl<F, Req, K> KeyOf<Req> for ByRequest<F>
where
    F: Fn(&Req) -> K,
{
    type Key = K;
    const OF_SERVICE: bool = false;

    fn key(&self, request: &Req, _ledger: Option<&Ledger>) -> K {
        (self.0)(request)
    }
}

impl<F> fmt::Debug for ByRequest<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ByRequest").field(&type_name::<F>()).finish()
    }
}
