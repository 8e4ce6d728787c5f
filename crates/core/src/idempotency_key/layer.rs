use std::{any::type_name, fmt};

use tower_layer::Layer;

use super::{IdempotencyKey, RandomKey};
use crate::Chance;

/// Gives each call an `Idempotency-Key`. See the [module docs](super).
#[derive(Clone, Default)]
pub struct IdempotencyKeyLayer<M = RandomKey> {
    make: M,
}

impl IdempotencyKeyLayer {
    /// A random UUID for each call.
    pub fn new() -> Self {
        Self::default()
    }

    /// Draws from another source of randomness, for instance a seeded one.
    #[must_use]
    pub fn chance(self, chance: Chance) -> Self {
        Self {
            make: RandomKey::new(chance),
        }
    }
}

impl<M> IdempotencyKeyLayer<M> {
    /// Keys that `make` gives: a closure `Fn(&Request<B>) -> HeaderValue`.
    pub fn made_by<B>(make: M) -> Self
    where
        M: super::MakeKey<B>,
    {
        Self { make }
    }
}

impl<S, M: Clone> Layer<S> for IdempotencyKeyLayer<M> {
    type Service = IdempotencyKey<S, M>;

    fn layer(&self, inner: S) -> Self::Service {
        IdempotencyKey::new(inner, self.make.clone())
    }
}

impl<M> fmt::Debug for IdempotencyKeyLayer<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyKeyLayer")
            .field("make", &type_name::<M>())
            .finish()
    }
}
