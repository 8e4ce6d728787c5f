//! What the handles of all budgets have in common.

/// A budget at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// What is left, in whole numbers: retries of a [`RatioBudget`](crate::RatioBudget) (at a
    /// weight of 1) or a [`ConcurrencyBudget`](crate::ConcurrencyBudget), tokens of a
    /// [`CostBudget`](crate::CostBudget) or a [`ScoreBudget`](crate::ScoreBudget).
    pub balance: u64,
    /// Retries granted so far, without those that were given back.
    pub granted: u64,
    /// Retries denied so far.
    pub denied: u64,
}

/// The public face of a budget around an `Arc` of its purse, which is the gate.
///
/// The purse and not the handle: two handles in two `Arc`s would be two gates, and charge twice.
macro_rules! handle {
    ($Budget:ident) => {
        impl $Budget {
            /// What it holds now, and what it did so far.
            pub fn snapshot(&self) -> crate::Snapshot {
                self.0.snapshot(tower_spillway_core::clock::now())
            }

            /// As a gate, for the `gate` setter of a retrying layer.
            ///
            /// Every handle of one budget gives the same gate, so a call that meets it in several
            /// places is charged once.
            pub fn as_gate(&self) -> std::sync::Arc<dyn tower_spillway_core::Gate> {
                // A clone of the one `Arc`: a call tells gates apart by address.
                std::sync::Arc::clone(&self.0) as std::sync::Arc<dyn tower_spillway_core::Gate>
            }

            /// Names it in [metrics](crate#metrics); the first name stays. Without one it is
            /// `unnamed`.
            #[must_use]
            pub fn named(self, name: impl Into<tower_spillway_core::TargetName>) -> Self {
                self.0.meter.name(name.into());
                self
            }
        }

        impl From<$Budget> for std::sync::Arc<dyn tower_spillway_core::Gate> {
            fn from(budget: $Budget) -> Self {
                budget.0
            }
        }

        impl From<&$Budget> for std::sync::Arc<dyn tower_spillway_core::Gate> {
            fn from(budget: &$Budget) -> Self {
                budget.as_gate()
            }
        }

        impl std::fmt::Debug for $Budget {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let crate::Snapshot {
                    balance,
                    granted,
                    denied,
                } = self.snapshot();
                f.debug_struct(stringify!($Budget))
                    .field("balance", &balance)
                    .field("granted", &granted)
                    .field("denied", &denied)
                    .finish()
            }
        }
    };
}

pub(crate) use handle;
