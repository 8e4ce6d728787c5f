//! A walker that drops a future at every await point.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use tokio::time::sleep;

/// A future that nobody wakes for this long, in paused time, hangs for ever.
const HANGS: Duration = Duration::from_secs(7 * 86_400);

/// Makes a future, polls it `k` times and drops it, for `k` = 0, 1, 2, … until it completes within
/// `k` polls; after each drop calls `check(k)`. Gives the number of drops.
///
/// Between polls it waits until the future is woken, so that paused time moves on: use it in
/// `#[tokio::test(start_paused = true)]`. A future that hangs for ever is dropped where it hangs,
/// and ends the walk.
///
/// ```
/// use std::{sync::{Arc, atomic::{AtomicUsize, Ordering}}, time::Duration};
/// use tower_spillway_core::testing::drops;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let open = Arc::new(AtomicUsize::new(0));
/// struct Permit(Arc<AtomicUsize>);
/// impl Drop for Permit {
///     fn drop(&mut self) {
///         self.0.fetch_sub(1, Ordering::SeqCst);
///     }
/// }
///
/// let drops = drops::walk(
///     || async {
///         open.fetch_add(1, Ordering::SeqCst);
///         let _permit = Permit(open.clone());
///         tokio::time::sleep(Duration::from_secs(1)).await;
///         tokio::time::sleep(Duration::from_secs(1)).await;
///     },
///     |k| assert_eq!(open.load(Ordering::SeqCst), 0, "after {k} polls"),
/// )
/// .await;
/// assert_eq!(drops, 3, "before the first poll, and in either sleep");
/// # }
/// ```
pub async fn walk<F: Future>(mut make: impl FnMut() -> F, mut check: impl FnMut(usize)) -> usize {
    for most in 0.. {
        let ended = {
            let mut future = pin!(make());
            let mut hangs = pin!(sleep(HANGS));
            let mut polls = 0;
            poll_fn(|cx| {
                // First, so that this timer does not poll a future that nobody woke.
                if hangs.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Ended::Hung);
                }
                if polls == most {
                    return Poll::Ready(Ended::Dropped);
                }
                polls += 1;
                match future.as_mut().poll(cx) {
                    Poll::Ready(_) => Poll::Ready(Ended::Completed),
                    Poll::Pending if polls == most => Poll::Ready(Ended::Dropped),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await
        };
        match ended {
            Ended::Completed => return most,
            Ended::Dropped => check(most),
            // In the same state as at the drop before.
            Ended::Hung => {
                check(most);
                return most;
            }
        }
    }
    usize::MAX
}

enum Ended {
    Completed,
    Dropped,
    Hung,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_future_that_hangs_ends_the_walk() {
        let mut checked = Vec::new();
        let drops = walk(std::future::pending::<()>, |k| checked.push(k)).await;
        assert_eq!((drops, checked), (2, vec![0, 1, 2]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_future_that_is_ready_is_dropped_once_unpolled() {
        let mut checked = Vec::new();
        let drops = walk(|| async {}, |k| checked.push(k)).await;
        assert_eq!((drops, checked), (1, vec![0]));
    }
}
