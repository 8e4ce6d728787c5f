//! A budget that counts what it is told.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::{
    Class, Gate,
    gate::{Ask, Receipt, Settled},
};

/// Grants so many retries, gets back those that were not sent, and keeps a log.
///
/// ```
/// use tokio::time::Instant;
/// use tower_spillway_core::{Class, Grant, gate::Ask, testing::gate::CountingGate};
///
/// let gate = CountingGate::allowing(1);
/// let ask = Ask::retry(Class::Transient, Instant::now());
/// let grant = Grant::withdraw(&gate.as_gate(), &ask).unwrap();
/// assert!(Grant::withdraw(&gate.as_gate(), &ask).is_none());
/// assert_eq!((gate.asked(), gate.reserved(), gate.balance()), (2, 1, 0));
/// drop(grant);
/// assert_eq!((gate.reserved(), gate.balance()), (0, 1));
/// ```
///
/// # Clone
///
/// Clones are handles of one gate.
#[derive(Clone, Debug, Default)]
pub struct CountingGate(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted(Mutex<Log>);

#[derive(Debug, Default)]
struct Log {
    allowed: usize,
    entered: usize,
    left: usize,
    asked: usize,
    granted: usize,
    ends: Vec<Class>,
    settled: Vec<Settled>,
}

impl Counted {
    fn lock(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CountingGate {
    /// Grants so many retries.
    pub fn allowing(retries: usize) -> Self {
        let gate = Self::default();
        gate.allow(retries);
        gate
    }

    /// What a layer takes. All handles give the same gate.
    pub fn as_gate(&self) -> Arc<dyn Gate> {
        Arc::clone(&self.0) as Arc<dyn Gate>
    }

    /// From now on it grants so many.
    pub fn allow(&self, retries: usize) {
        self.0.lock().allowed = retries;
    }

    /// How many it would still grant.
    pub fn balance(&self) -> usize {
        self.0.lock().allowed
    }

    /// How often it was asked for a retry.
    pub fn asked(&self) -> usize {
        self.0.lock().asked
    }

    /// How many retries it granted.
    pub fn granted(&self) -> usize {
        self.0.lock().granted
    }

    /// Retries that were granted and are not settled.
    pub fn reserved(&self) -> usize {
        let log = self.0.lock();
        log.granted.saturating_sub(log.settled.len())
    }

    /// How many calls came in, and how many left.
    pub fn entered_and_left(&self) -> (usize, usize) {
        let log = self.0.lock();
        (log.entered, log.left)
    }

    /// The classes of attempts that ended.
    pub fn ends(&self) -> Vec<Class> {
        self.0.lock().ends.clone()
    }

    /// How granted retries were settled.
    pub fn settled(&self) -> Vec<Settled> {
        self.0.lock().settled.clone()
    }

    /// Fails the test that calls it if a call is inside or a retry is not settled.
    ///
    /// # Panics
    ///
    /// If something is open.
    #[track_caller]
    pub fn assert_nothing_open(&self) {
        let (entered, left) = self.entered_and_left();
        let open = (entered.saturating_sub(left), self.reserved());
        assert_eq!(open, (0, 0), "calls inside, and retries reserved");
    }
}

const RECEIPT: Receipt = Receipt(7);

impl Gate for Counted {
    fn enter(&self, _now: Instant) {
        self.lock().entered += 1;
    }

    fn leave(&self, _now: Instant) {
        self.lock().left += 1;
    }

    fn attempt_end(&self, class: Class, _now: Instant) {
        self.lock().ends.push(class);
    }

    fn withdraw(&self, _ask: &Ask) -> Option<Receipt> {
        let mut log = self.lock();
        log.asked += 1;
        log.allowed = log.allowed.checked_sub(1)?;
        log.granted += 1;
        Some(RECEIPT)
    }

    /// # Panics
    ///
    /// If the receipt is not the one that it gave.
    fn settle(&self, receipt: Receipt, settled: Settled) {
        assert_eq!(receipt, RECEIPT);
        let mut log = self.lock();
        if settled == Settled::NotSent {
            log.allowed += 1;
        }
        log.settled.push(settled);
    }
}
