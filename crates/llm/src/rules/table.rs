//! The rows in force.

use tower_spillway_core::Class;

use super::{Rule, Subclass, Vendor, statuses};

/// The rows in force, asked from the top. See the [module docs](super).
#[derive(Clone, Debug)]
pub struct Rules {
    own: Vec<Rule>,
    table: Vec<Rule>,
    moved: Vec<(Subclass, Class)>,
    larger_context_elsewhere: bool,
}

impl Rules {
    /// A vendor's table, that of the edge, and the statuses.
    pub fn of(vendor: Vendor) -> Self {
        let mut table = vendor.rules();
        table.extend(statuses::rules());
        Self::only(table)
    }

    /// These rows and no others. What no row holds for is read by its status as
    /// [`class_of_status`](tower_spillway_core::adapter::class_of_status) does.
    pub fn only(rows: impl IntoIterator<Item = Rule>) -> Self {
        Self {
            own: Vec::new(),
            table: rows.into_iter().collect(),
            moved: Vec::new(),
            larger_context_elsewhere: false,
        }
    }

    /// Adds a row. Rows that are added are asked before the table, in the order of adding.
    #[must_use]
    pub fn with(mut self, rule: Rule) -> Self {
        self.own.push(rule);
        self
    }

    /// Moves all rows of a subclass to another class.
    #[must_use]
    pub fn subclass(mut self, subclass: Subclass, class: Class) -> Self {
        self.moved.retain(|(moved, _)| *moved != subclass);
        self.moved.push((subclass, class));
        self
    }

    /// Whether a target with a larger context is configured: what is too long here goes there at
    /// once. Without one it is the caller's fault, and the vendor's own answer comes back. `false`
    /// by default.
    #[must_use]
    pub fn larger_context_elsewhere(mut self, yes: bool) -> Self {
        self.larger_context_elsewhere = yes;
        self
    }

    /// The rows, in the order in which they are asked.
    pub fn rows(&self) -> impl Iterator<Item = &Rule> {
        self.own.iter().chain(&self.table)
    }

    /// The class of a row, switches applied.
    pub(super) fn class_of(&self, rule: &Rule) -> Class {
        let moved = self.moved.iter().find(|(s, _)| Some(*s) == rule.subclass);
        match (moved, rule.subclass) {
            (Some((_, class)), _) => *class,
            (None, Some(Subclass::ContextLength)) if self.larger_context_elsewhere => {
                Class::NotHere
            }
            _ => rule.class,
        }
    }
}
