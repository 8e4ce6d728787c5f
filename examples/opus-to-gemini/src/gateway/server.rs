//! Connections: taken in, kept to their time limits, and let go.

use std::{future::Future, io, mem, pin::pin, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
    time::{interval, sleep, timeout},
};
use tower_spillway_core::clock::{self, Every};

use super::{
    Gateway, after,
    gateway::Current,
    metrics,
    pace::{Pace, Paced},
    rewoken::Rewoken,
};

/// Connections beyond those of calls: health checks, scrapers, idle ones.
const SPARE: usize = 256;

/// How often it is said that no connection can be taken.
const TELL_EACH: Duration = Duration::from_secs(60);

/// What a client may send before its body.
const LARGEST_HEAD: usize = 64 * 1024;

pub(super) async fn serve(
    gateway: &Gateway,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
    now: impl Future<Output = ()>,
) {
    let table = gateway.current().table().clone();
    let queue = gateway.queue();
    let most = queue.most_in_flight() + queue.most_waiting() + SPARE;
    let door = Door {
        listener,
        connections: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))),
        told: Every::new(TELL_EACH),
    };
    let server = Server {
        router: gateway.router(),
        head_within: table.read_header_within,
        pace: Pace {
            least: table.write_least,
            within: table.write_within,
        },
        graceful: GracefulShutdown::new(),
    };
    let mut open = JoinSet::new();
    let mut stop = pin!(stop);
    // Aborted when this function is over, or dropped.
    let mut background = JoinSet::new();
    background.spawn(background_work(gateway.clone()));
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            Some(_) = open.join_next() => continue,
            accepted = door.accept() => accepted,
        };
        if let Some((stream, place)) = accepted {
            let connection = server.connection(stream);
            open.spawn(async move {
                let _place = place;
                // A client that goes away ends its connection in an error: nobody's fault.
                connection.await.ok();
            });
        }
    }
    drop(door);
    tracing::info!(open = open.len(), "stopping: calls under way may end");
    let within = gateway.current().table().shutdown_within;
    let ended = timeout(within, server.graceful.shutdown());
    tokio::select! {
        _ = ended => {}
        () = now => {}
    }
    gateway.cut();
    open.shutdown().await;
}

/// Where connections come from.
struct Door {
    listener: TcpListener,
    connections: Arc<Semaphore>,
    /// It was said that none can be taken.
    told: Every,
}

impl Door {
    /// A connection, once there is room for one; `None` if it was none.
    async fn accept(&self) -> Option<(TcpStream, OwnedSemaphorePermit)> {
        let place = Arc::clone(&self.connections).acquire_owned().await.ok()?;
        match self.listener.accept().await {
            Ok((stream, _)) => Some((stream, place)),
            Err(error) => {
                // Out of descriptors, most likely: some will come back, and until then the same
                // connection fails again at once.
                self.tell(&error);
                sleep(Duration::from_millis(50)).await;
                None
            }
        }
    }

    fn tell(&self, error: &io::Error) {
        if self.told.is_due(clock::now()) {
            tracing::warn!(
                %error,
                "no connection can be taken, callers wait: is the limit of open files too low \
                 (`ulimit -n`)?"
            );
        }
    }
}

struct Server {
    router: Router,
    head_within: Duration,
    pace: Pace,
    graceful: GracefulShutdown,
}

impl Server {
    fn connection(
        &self,
        stream: TcpStream,
    ) -> impl Future<Output = Result<(), hyper::Error>> + use<> {
        stream.set_nodelay(true).ok();
        let stream = Paced::new(stream, self.pace);
        let service = TowerToHyperService::new(self.router.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.head_within)
            .max_buf_size(LARGEST_HEAD)
            .serve_connection(TokioIo::new(Box::pin(stream)), service);
        Rewoken::new(after::recording(self.graceful.watch(connection)))
    }
}

/// What runs beside the calls: probes of targets, a watch over breakers, upkeep of metrics.
async fn background_work(gateway: Gateway) {
    let mut changes = gateway.changes();
    let mut probes = JoinSet::new();
    let current = Arc::clone(&changes.borrow_and_update());
    let mut watches = start(&gateway, &current, &mut probes);
    drop(current);
    let mut upkeep = interval(Duration::from_secs(5));
    loop {
        tokio::select! {
            _ = upkeep.tick() => metrics::upkeep(),
            Some(_) = probes.join_next() => {}
            changed = changes.changed() => {
                if changed.is_err() {
                    return;
                }
                let current = Arc::clone(&changes.borrow_and_update());
                drop(mem::replace(&mut watches, start(&gateway, &current, &mut probes)));
            }
        }
    }
}

/// Starts the probes that do not run yet, and a watch over each breaker in the place of those before.
fn start(gateway: &Gateway, current: &Current, probes: &mut JoinSet<()>) -> JoinSet<()> {
    for probing in current.fleet.probes() {
        probes.spawn(probing);
    }
    let mut watches = JoinSet::new();
    for member in current.fleet.members() {
        let Some(breaker) = member.breaker().cloned() else {
            continue;
        };
        let (gateway, name) = (gateway.clone(), member.name().to_owned());
        watches.spawn(async move { gateway.since().watch(&name, breaker).await });
    }
    watches
}
