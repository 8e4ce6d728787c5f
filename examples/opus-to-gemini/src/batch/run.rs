//! The queue at work.

use std::{collections::HashMap, future::Future, pin::pin, time::Duration};

use tokio::{
    task::{Id, JoinSet},
    time::{Instant, sleep_until},
};
use tower_spillway_core::{Chance, clock};
use tower_spillway_llm::PriceTable;

use super::{
    Item, Journal, JournalError, Outcome,
    outcome::{Again, again},
    queue::{Entry, Next, Queue, delay},
};
use crate::{
    chat::{Asked, ChatError, ask},
    config::Batch,
    pipeline::Pipeline,
};

/// What a run tells while it goes.
pub trait Progress {
    /// An item is done.
    fn done(&mut self, outcome: &Outcome);

    /// An item goes back into the queue.
    fn back(&mut self) {}

    /// Every target refuses: nothing starts for so long.
    fn paused(&mut self, wait: Duration) {
        let _ = wait;
    }
}

/// What came of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Items with an answer, those of earlier runs included.
    pub ok: usize,
    /// Items without one.
    pub fail: usize,
    /// Items that were not begun or not ended when the run was stopped.
    pub left: usize,
}

/// Works off all items that the journal does not have. Once `stop` ends, what is out may end and
/// nothing more is started.
///
/// # Errors
///
/// The journal cannot be written. An item without an answer is no error of the run.
pub async fn run(
    pipeline: &Pipeline,
    config: &Batch,
    prices: &PriceTable,
    items: &[Item],
    journal: &mut Journal,
    progress: &mut dyn Progress,
    stop: impl Future<Output = ()>,
) -> Result<Summary, JournalError> {
    let todo: Vec<Item> = items.iter().filter(|i| !journal.has(i)).cloned().collect();
    let mut run = Run {
        summary: Summary {
            ok: items.len() - todo.len(),
            ..Summary::default()
        },
        give_up: config
            .give_up_after
            .and_then(|d| clock::now().checked_add(d)),
        chance: Chance::default(),
        queue: Queue::new(todo),
        config,
        prices,
        journal,
        progress,
    };
    run.work(pipeline, stop).await?;
    run.summary.left = items.len() - run.summary.ok - run.summary.fail;
    Ok(run.summary)
}

struct Run<'r> {
    config: &'r Batch,
    prices: &'r PriceTable,
    journal: &'r mut Journal,
    progress: &'r mut dyn Progress,
    queue: Queue,
    chance: Chance,
    give_up: Option<Instant>,
    summary: Summary,
}

/// Calls that are out, and their items.
#[derive(Default)]
struct Out {
    calls: JoinSet<Asked>,
    entries: HashMap<Id, Entry>,
}

impl Run<'_> {
    async fn work(
        &mut self,
        pipeline: &Pipeline,
        stop: impl Future<Output = ()>,
    ) -> Result<(), JournalError> {
        let mut stop = pin!(stop);
        let mut stopped = false;
        let mut out = Out::default();
        let most = usize::try_from(self.config.concurrency).unwrap_or(usize::MAX);
        loop {
            let next = match stopped {
                true if out.calls.is_empty() => return Ok(()),
                true => Next::Wait,
                false => self.queue.next(clock::now(), out.calls.len(), most),
            };
            let wake = match next {
                Next::Start(entry) => {
                    self.start(pipeline, *entry, &mut out)?;
                    continue;
                }
                Next::At(at) => Some(at),
                Next::Wait => None,
                Next::Done => return Ok(()),
            };
            tokio::select! {
                Some(ended) = out.calls.join_next_with_id() => {
                    // A call that panicked is an item that failed; it must not end the others.
                    let (id, asked) = match ended {
                        Ok((id, asked)) => (id, Some(asked)),
                        Err(error) => (error.id(), None),
                    };
                    if let Some(entry) = out.entries.remove(&id) {
                        self.ended(entry, asked)?;
                    }
                }
                () = until(wake) => {}
                () = &mut stop, if !stopped => stopped = true,
            }
        }
    }

    fn start(
        &mut self,
        pipeline: &Pipeline,
        entry: Entry,
        out: &mut Out,
    ) -> Result<(), JournalError> {
        let chat = match entry.item.chat() {
            Ok(chat) => chat,
            Err(why) => return self.done(&entry.item, &Outcome::bad(&why)),
        };
        let pipeline = pipeline.clone();
        let handle = out.calls.spawn(async move { ask(&pipeline, &chat).await });
        out.entries.insert(handle.id(), entry);
        Ok(())
    }

    fn ended(&mut self, mut entry: Entry, asked: Option<Asked>) -> Result<(), JournalError> {
        let Some(asked) = asked else {
            let outcome = Outcome::broken(entry.requeues);
            return self.done(&entry.item, &outcome);
        };
        let now = clock::now();
        let told = match again(&asked) {
            Again::No => {
                // An error for good is an answer too: somebody serves.
                if !matches!(asked.answer, Err(ChatError::NoAnswer(_))) {
                    self.queue.served();
                }
                let outcome = Outcome::new(asked, entry.requeues, self.prices);
                return self.done(&entry.item, &outcome);
            }
            Again::In(told) => told,
            Again::AllRefuse(told) => {
                let wait = told.unwrap_or_default().max(self.config.requeue_base);
                self.queue.pause(now + wait);
                self.progress.paused(wait);
                told
            }
        };
        entry.requeues = entry.requeues.saturating_add(1);
        let wait = delay(self.config, &self.chance, entry.requeues, told);
        let at = now.checked_add(wait);
        let allowed = match self.give_up {
            Some(give_up) => at.is_some_and(|at| at < give_up),
            None => entry.requeues <= self.config.max_requeues,
        };
        match at.filter(|_| allowed) {
            Some(at) => {
                self.progress.back();
                self.queue.put_back(entry, at);
                Ok(())
            }
            None => {
                let outcome = Outcome::new(asked, entry.requeues - 1, self.prices);
                self.done(&entry.item, &outcome)
            }
        }
    }

    fn done(&mut self, item: &Item, outcome: &Outcome) -> Result<(), JournalError> {
        self.journal.add(item, outcome)?;
        match outcome.is_ok() {
            true => self.summary.ok += 1,
            false => self.summary.fail += 1,
        }
        self.progress.done(outcome);
        Ok(())
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
