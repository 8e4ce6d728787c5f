//! The gateway, and what its handlers share.

use std::{
    fmt,
    future::Future,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use ::metrics::Gauge;
use axum::Router;
use secrecy::SecretString;
use tokio::{net::TcpListener, sync::watch, time::Instant};
use tower_spillway_core::clock;
use tower_spillway_llm::PriceTable;

use super::{
    calls::Calls, figures::Figures, keys::Keys, metrics, queue::Queue, router, server,
    setup::SetupError, since::Since, wall::now_ms,
};
use crate::{
    config::{self, Config},
    pipeline::Fleet,
};

/// An OpenAI-compatible server over a [`Fleet`]. See the [module docs](super).
///
/// # Clone
///
/// Clones are the same gateway.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

struct Inner {
    current: watch::Sender<Arc<Current>>,
    queue: Queue,
    calls: Calls,
    figures: Figures,
    in_flight: Gauge,
    since: Since,
    started: Instant,
    started_at_ms: u64,
    loopback: AtomicBool,
    cut: AtomicBool,
}

/// What a reload changes.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) fleet: Fleet,
    pub(super) keys: Keys,
    pub(super) prices: PriceTable,
}

impl Current {
    pub(super) fn table(&self) -> &config::Gateway {
        &self.fleet.config().gateway
    }

    fn new(
        fleet: Fleet,
        key: impl Fn(&str) -> Option<SecretString>,
    ) -> Result<Arc<Self>, SetupError> {
        Ok(Arc::new(Self {
            keys: Keys::load(&fleet.config().gateway, key)?,
            prices: fleet.config().prices.table()?,
            fleet,
        }))
    }
}

impl Gateway {
    /// Puts it together, with the key that `key` gives for the name of each variable: those of the
    /// vendors, and those that callers may bring. Nothing is sent or listened to yet.
    ///
    /// The first gateway of a process takes the `metrics` facade, unless something else has; then
    /// `/metrics` is not served.
    ///
    /// # Errors
    ///
    /// [`SetupError`] names the target or the figure that is wrong, or the key that is missing.
    pub fn new(
        config: &Config,
        key: impl Fn(&str) -> Option<SecretString>,
    ) -> Result<Self, SetupError> {
        // Before the breakers and budgets, which show themselves when they are made.
        metrics::install();
        let fleet = Fleet::new(config, &key)?;
        let current = Current::new(fleet, key)?;
        Ok(Self(Arc::new(Inner {
            queue: Queue::new(&config.gateway),
            calls: Calls::new(config.gateway.last_calls),
            current: watch::Sender::new(current),
            figures: Figures::default(),
            in_flight: metrics::in_flight(),
            since: Since::default(),
            started: clock::now(),
            started_at_ms: now_ms(),
            loopback: AtomicBool::new(true),
            cut: AtomicBool::new(false),
        })))
    }

    /// Goes on by another configuration: calls that come from now on go by it, calls under way end
    /// as they began, and what it leaves as it was (breakers, holds, budget, connections) goes on:
    /// see [`Fleet::reload`].
    ///
    /// Of the table `[gateway]` the address, the bounds of calls at one time, the times for a head
    /// and for taking an answer, the form of the log and the number of last calls stay as they were at
    /// the start.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); everything stays as it was.
    pub fn reload(
        &self,
        config: &Config,
        key: impl Fn(&str) -> Option<SecretString>,
    ) -> Result<(), SetupError> {
        let old = self.current();
        let fleet = old.fleet.reload(config, &key)?;
        let current = Current::new(fleet, key)?;
        let fixed = changed_but_fixed(old.table(), current.table());
        if !fixed.is_empty() {
            let keys = fixed.join(", ");
            tracing::warn!(keys, "changes of these in [gateway] take a restart");
        }
        self.0.current.send_replace(current);
        Ok(())
    }

    /// As a service for a server of the user's own. It lacks what only [`serve`](Self::serve) does:
    /// time limits for connections, upkeep of metrics, and the probes of targets, which are to be
    /// spawned: `self.fleet().probes()`.
    pub fn router(&self) -> Router {
        router::router(self)
    }

    /// Serves until `stop` is ready; then lets calls under way end, for at most
    /// `shutdown_within` or until `now` is ready, and cuts the rest.
    ///
    /// # Errors
    ///
    /// The listener has no address.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
        now: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let address = listener.local_addr()?;
        let loopback = address.ip().is_loopback();
        self.0.loopback.store(loopback, Ordering::Relaxed);
        if !loopback && self.current().keys.is_empty() {
            tracing::warn!(
                %address,
                "this address can be reached from other machines, and no keys are asked for: \
                 whoever reaches it spends yours (set inbound_keys_env in [gateway])"
            );
        }
        server::serve(&self, listener, stop, now).await;
        Ok(())
    }

    /// The targets in force, to look at or to open and close by hand.
    pub fn fleet(&self) -> Fleet {
        self.current().fleet.clone()
    }

    pub(super) fn current(&self) -> Arc<Current> {
        Arc::clone(&self.0.current.borrow())
    }

    pub(super) fn changes(&self) -> watch::Receiver<Arc<Current>> {
        self.0.current.subscribe()
    }

    pub(super) fn queue(&self) -> &Queue {
        &self.0.queue
    }

    pub(super) fn calls(&self) -> &Calls {
        &self.0.calls
    }

    pub(super) fn figures(&self) -> &Figures {
        &self.0.figures
    }

    pub(super) fn in_flight(&self) -> &Gauge {
        &self.0.in_flight
    }

    pub(super) fn since(&self) -> &Since {
        &self.0.since
    }

    pub(super) fn started(&self) -> (Instant, u64) {
        (self.0.started, self.0.started_at_ms)
    }

    pub(super) fn is_loopback(&self) -> bool {
        self.0.loopback.load(Ordering::Relaxed)
    }

    /// Calls that end from now on are cut.
    pub(super) fn cut(&self) {
        self.0.cut.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_cut(&self) -> bool {
        self.0.cut.load(Ordering::Relaxed)
    }
}

/// What stays as it was at the start, and the file says otherwise.
fn changed_but_fixed(old: &config::Gateway, new: &config::Gateway) -> Vec<&'static str> {
    let changes = [
        ("listen", old.listen != new.listen),
        ("in_flight", old.in_flight != new.in_flight),
        ("queue", old.queue != new.queue),
        (
            "read_header_within",
            old.read_header_within != new.read_header_within,
        ),
        ("write_within", old.write_within != new.write_within),
        ("write_least", old.write_least != new.write_least),
        ("log", old.log != new.log),
        ("last_calls", old.last_calls != new.last_calls),
    ];
    let changed = changes.into_iter().filter(|(_, changed)| *changed);
    changed.map(|(key, _)| key).collect()
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("current", &self.current())
            .finish_non_exhaustive()
    }
}
