//! The handle of a running fake vendor.

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    ops::RangeInclusive,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use tower_spillway_core::Chance;

use super::{
    behaviour::Behaviour,
    log::Entry,
    server,
    state::{Faults, Key, State},
    vendor::Vendor,
};

/// Sets up a fake vendor.
#[must_use]
pub struct Builder {
    vendor: Vendor,
    keys: Vec<Key>,
    chance: Chance,
    latency: RangeInclusive<Duration>,
}

impl Builder {
    /// Accepts this key; requests that bring it are logged with `label`.
    pub fn accepts(self, label: &str, key: &str) -> Self {
        self.key(label, key, true)
    }

    /// Knows this key as somebody else's: rejects it, and logs it with `label`.
    pub fn knows(self, label: &str, key: &str) -> Self {
        self.key(label, key, false)
    }

    fn key(mut self, label: &str, key: &str, accepted: bool) -> Self {
        self.keys.push(Key {
            label: label.into(),
            key: key.into(),
            accepted,
        });
        self
    }

    /// How long answers take; each one is drawn from this range. Nothing by default.
    pub fn latency(mut self, latency: RangeInclusive<Duration>) -> Self {
        self.latency = latency;
        self
    }

    /// Where latencies are drawn from.
    pub fn chance(mut self, chance: Chance) -> Self {
        self.chance = chance;
        self
    }

    /// Listens on a free port of the loopback interface.
    ///
    /// # Errors
    ///
    /// Those of the socket.
    pub async fn start(self) -> io::Result<FakeVendor> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = State::new(self.vendor, self.keys, self.chance, self.latency);
        let state = Arc::new(state);
        let (stop, stopped) = oneshot::channel();
        let server = tokio::spawn(server::serve(listener, Arc::clone(&state), stopped));
        Ok(FakeVendor {
            state,
            address,
            stop,
            server,
        })
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("vendor", &self.vendor)
            .field("latency", &self.latency)
            .finish_non_exhaustive()
    }
}

/// A running fake vendor. Dropping it stops the server without waiting.
///
/// See the [module docs](super).
pub struct FakeVendor {
    state: Arc<State>,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl FakeVendor {
    /// Sets up a server that accepts no key yet and answers at once.
    pub fn builder(vendor: Vendor) -> Builder {
        Builder {
            vendor,
            keys: Vec::new(),
            chance: Chance::default(),
            latency: Duration::ZERO..=Duration::ZERO,
        }
    }

    /// Which vendor it plays.
    pub fn vendor(&self) -> Vendor {
        self.state.vendor
    }

    /// The address of its chat endpoint.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, self.state.vendor.path())
    }

    /// What it does from now on, once what [`next`](Self::next) asked for is done.
    pub fn set(&self, behaviour: Behaviour) {
        self.state.script().always = behaviour;
    }

    /// What it does with the next `times` requests, after those asked for before.
    pub fn next(&self, times: usize, behaviour: Behaviour) {
        let again = std::iter::repeat_n(behaviour, times);
        self.state.script().next.extend(again);
    }

    /// With so many of a hundred requests it does one of these from now on, both drawn by chance;
    /// with none of those that [`next`](Self::next) is for.
    pub fn set_faults(&self, percent: u8, of: impl Into<Vec<Behaviour>>) {
        self.state.script().faults = Faults {
            percent: percent.into(),
            of: of.into(),
        };
    }

    /// How long answers take from now on; each one is drawn from this range.
    pub fn set_latency(&self, latency: RangeInclusive<Duration>) {
        self.state.script().latency = latency;
    }

    /// How long streamed answers take from their head to their end from now on; they come in even
    /// pieces. No time at all by default.
    pub fn set_stream(&self, over: Duration) {
        self.state.script().stream = over;
    }

    /// How many words answers have from now on, each a token of a stream. What was asked is said
    /// back by default.
    pub fn set_words(&self, words: usize) {
        self.state.script().words = Some(words);
    }

    /// Every request so far, in the order of arrival.
    pub fn log(&self) -> Vec<Entry> {
        self.state.log().clone()
    }

    /// Connections that are open now.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// Takes no new connections, lets requests under way end for half a second, then closes all.
    pub async fn stop(self) {
        self.stop.send(()).ok();
        self.server.await.ok();
    }
}

impl fmt::Debug for FakeVendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeVendor")
            .field("vendor", &self.state.vendor)
            .field("address", &self.address)
            .field("connections", &self.connections())
            .finish_non_exhaustive()
    }
}
