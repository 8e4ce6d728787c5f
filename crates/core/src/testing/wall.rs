//! A wall clock that stands still.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use crate::clock::WallClock;

/// A wall clock that moves only by hand, forwards or backwards.
///
/// Give a clone to [`Wall::new`](crate::clock::Wall::new) and keep one to move it.
///
/// # Clone
///
/// Clones show the same time.
#[derive(Clone, Debug)]
pub struct ManualWall(Arc<Mutex<SystemTime>>);

impl ManualWall {
    /// A clock that stands at `time`.
    pub fn at(time: SystemTime) -> Self {
        Self(Arc::new(Mutex::new(time)))
    }

    /// Sets the time, back too.
    pub fn set(&self, time: SystemTime) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = time;
    }

    /// Moves the time on; beyond what a [`SystemTime`] can hold it stays where it is.
    pub fn advance(&self, by: Duration) {
        let mut time = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *time = time.checked_add(by).unwrap_or(*time);
    }
}

impl WallClock for ManualWall {
    fn now(&self) -> SystemTime {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Wall;

    #[test]
    fn a_layer_sees_the_time_that_was_set() {
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        let clock = ManualWall::at(start);
        let wall = Wall::new(clock.clone());
        assert_eq!(wall.now(), start);
        clock.advance(Duration::from_secs(5));
        assert_eq!(wall.now(), start + Duration::from_secs(5));
        clock.set(SystemTime::UNIX_EPOCH);
        assert_eq!(wall.now(), SystemTime::UNIX_EPOCH);
    }
}
