//! Which state a call meets.

use std::fmt;

use tower_spillway_core::TargetName;

/// Which state a call meets: one for each target, or one for each key of a request.
pub trait KeyOf<Req> {
    /// The key; `None` for the state of the target that the call goes to.
    fn key(&self, request: &Req) -> Option<TargetName>;
}

/// One state for each target: the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByTarget;

impl<Req> KeyOf<Req> for ByTarget {
    fn key(&self, _: &Req) -> Option<TargetName> {
        None
    }
}

/// One state for each key that a function finds in a request. See
/// [`CircuitBreakerLayer::keyed`](crate::CircuitBreakerLayer::keyed).
#[derive(Clone, Copy)]
pub struct Keyed<F>(pub(crate) F);

impl<F, Req> KeyOf<Req> for Keyed<F>
where
    F: Fn(&Req) -> Option<TargetName>,
{
    fn key(&self, request: &Req) -> Option<TargetName> {
        (self.0)(request)
    }
}

impl<F> fmt::Debug for Keyed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keyed")
            .field(&std::any::type_name::<F>())
            .finish()
    }
}
