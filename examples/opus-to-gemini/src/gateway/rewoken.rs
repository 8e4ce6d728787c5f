//! A connection that wakes itself goes on at once.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::task::AtomicWaker;
use pin_project_lite::pin_project;

/// A future that wakes itself more often in a row lets others go first.
const MOST_ROUNDS: usize = 4;

const AT_REST: u8 = 0;
const POLLED: u8 = 1;
const WOKEN: u8 = 2;

pin_project! {
    /// Polls a future again that was woken while it was polled.
    ///
    /// A handler that takes the body of its request wakes the connection, whose task is the one
    /// that polls the handler. The runtime sees a task that wants to let others go first: it puts
    /// it at the end of the line and wakes a thread to help, at each call, while there is nobody
    /// else and nothing to help with.
    pub(super) struct Rewoken<F> {
        #[pin]
        inner: F,
        own: Arc<Own>,
        waker: Waker,
    }
}

struct Own {
    state: AtomicU8,
    task: AtomicWaker,
}

impl<F> Rewoken<F> {
    pub(super) fn new(inner: F) -> Self {
        let own = Arc::new(Own {
            state: AtomicU8::new(AT_REST),
            task: AtomicWaker::new(),
        });
        Self {
            inner,
            waker: Waker::from(Arc::clone(&own)),
            own,
        }
    }
}

impl Wake for Own {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, Ordering::AcqRel) == AT_REST {
            self.task.wake();
        }
    }
}

impl<F: Future> Future for Rewoken<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut this = self.project();
        // Before it is at rest: whoever wakes it then finds the task.
        this.own.task.register(cx.waker());
        for _ in 0..MOST_ROUNDS {
            // A swap, not a store: who woke it since and found it woken has told nobody, so what it
            // did before must be seen now.
            this.own.state.swap(POLLED, Ordering::AcqRel);
            let mut own = Context::from_waker(this.waker);
            if let Poll::Ready(out) = this.inner.as_mut().poll(&mut own) {
                return Poll::Ready(out);
            }
            let rests = this.own.state.compare_exchange(
                POLLED,
                AT_REST,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            if rests.is_ok() {
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        sync::atomic::{AtomicBool, AtomicUsize},
        thread,
    };

    use super::*;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Task(AtomicU8);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Wakes itself so often; then leaves its waker behind.
    fn wakes_itself(times: usize) -> (impl Future<Output = ()>, Arc<AtomicWaker>) {
        let left = Arc::new(AtomicWaker::new());
        let (mut polls, leaves) = (0, Arc::clone(&left));
        let future = poll_fn(move |cx| {
            polls += 1;
            match polls {
                n if n <= times => cx.waker().wake_by_ref(),
                n if n == times + 1 => leaves.register(cx.waker()),
                _ => return Poll::Ready(()),
            }
            Poll::Pending
        });
        (future, left)
    }

    fn polled(times: usize) -> (Vec<u8>, bool) {
        let (future, left) = wakes_itself(times);
        let mut future = std::pin::pin!(Rewoken::new(future));
        let task = Arc::new(Task::default());
        let waker = Waker::from(Arc::clone(&task));
        let mut woken = Vec::new();
        for _ in 0..3 {
            let poll = future.as_mut().poll(&mut Context::from_waker(&waker));
            if poll.is_ready() {
                return (woken, true);
            }
            left.wake();
            woken.push(task.0.load(Ordering::Relaxed));
        }
        (woken, false)
    }

    #[test]
    fn one_that_wakes_itself_is_polled_on_and_its_task_is_woken_by_others_only() {
        assert_eq!(polled(0), (vec![1], true));
        assert_eq!(polled(3), (vec![1], true));
    }

    #[test]
    fn one_that_never_stops_lets_others_go_first() {
        // Its task is woken once a turn, since it has more to do.
        assert_eq!(polled(usize::MAX - 1), (vec![1, 2, 3], false));
    }

    /// Whether its task was woken since it was last asked.
    #[derive(Default)]
    struct Flag(AtomicBool);

    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Release);
        }
    }

    #[test]
    fn what_another_thread_did_before_it_woke_is_seen() {
        const TIMES: usize = 5_000;
        let [done, woken, seen] = [(); 3].map(|()| Arc::new(AtomicUsize::new(0)));
        let left = Arc::new(AtomicWaker::new());
        let mut future = std::pin::pin!(Rewoken::new({
            let (done, seen, left) = (Arc::clone(&done), Arc::clone(&seen), Arc::clone(&left));
            poll_fn(move |cx| {
                let now = done.load(Ordering::Acquire);
                if now == 0 {
                    left.register(cx.waker());
                }
                seen.store(now, Ordering::Release);
                Poll::<()>::Pending
            })
        }));
        let task = Arc::new(Flag::default());
        let waker = Waker::from(Arc::clone(&task));
        let mut cx = Context::from_waker(&waker);
        assert!(future.as_mut().poll(&mut cx).is_pending());
        let own = left.take().unwrap();
        let other = thread::spawn({
            let (woken, seen) = (Arc::clone(&woken), Arc::clone(&seen));
            move || {
                for n in 1..=TIMES {
                    own.wake_by_ref();
                    // It begins to be polled for the first while it is woken again.
                    (0..n % 8).for_each(|_| std::hint::spin_loop());
                    done.store(n, Ordering::Release);
                    own.wake_by_ref();
                    woken.store(n, Ordering::Release);
                    while seen.load(Ordering::Acquire) != n {
                        thread::yield_now();
                    }
                }
            }
        });
        while seen.load(Ordering::Relaxed) != TIMES {
            let woken = woken.load(Ordering::Acquire);
            match task.0.swap(false, Ordering::AcqRel) {
                true => assert!(future.as_mut().poll(&mut cx).is_pending()),
                // Everything that was done before is told by now.
                false => assert!(seen.load(Ordering::Relaxed) >= woken, "{woken} is lost"),
            }
        }
        other.join().unwrap();
    }
}
