//! From what the server asked to what is waited.

use std::time::Duration;

use crate::Chance;

/// Whether waits on a hint are spread, so that callers held by one answer do not return together.
#[derive(Clone, Debug, Default)]
pub enum Jitter {
    /// Exactly what was asked.
    None,
    /// What was asked and less than half of it more, at most 5 s more: a 60 s hint costs at most
    /// 65 s. (Envoy draws from `[t, 1.5 t)`; the bound is ours.)
    #[default]
    Additive,
}

/// The most that jitter adds to a hint.
const MOST_ADDED: Duration = Duration::from_secs(5);

/// The wait for a hint: at least what was asked; jitter only adds, in whole milliseconds.
pub fn wait(asked: Duration, jitter: &Jitter, chance: &Chance) -> Duration {
    match jitter {
        Jitter::None => asked,
        Jitter::Additive => {
            let less_than = asked.as_millis().div_ceil(2);
            let most = less_than.saturating_sub(1).min(MOST_ADDED.as_millis());
            let added = chance.up_to(u64::try_from(most).unwrap_or(0));
            asked.saturating_add(Duration::from_millis(added))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_only_adds_and_is_bounded() {
        let draw = |s, x| wait(Duration::from_secs(s), &Jitter::Additive, &Chance::fixed(x));
        assert_eq!(draw(2, 0), Duration::from_secs(2));
        assert_eq!(draw(2, u64::MAX), Duration::from_millis(2999));
        assert_eq!(draw(60, u64::MAX), Duration::from_secs(65));
        assert_eq!(draw(u64::MAX, u64::MAX), Duration::MAX);
    }

    #[test]
    fn no_jitter_is_exact() {
        assert_eq!(
            wait(Duration::from_millis(1), &Jitter::None, &Chance::thread()),
            Duration::from_millis(1)
        );
    }
}
