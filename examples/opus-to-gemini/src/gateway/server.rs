//! Connections: taken in, kept to their time limits, and let go.

use std::{future::Future, mem, pin::pin, sync::Arc, time::Duration};

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
use tokio_io_timeout::TimeoutStream;

use super::{Gateway, gateway::Current, metrics};

/// For a client to take a piece of its answer.
const WRITE_WITHIN: Duration = Duration::from_secs(30);

/// Connections beyond those of calls: health checks, scrapers, idle ones.
const SPARE: usize = 256;

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
    let connections = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
    let server = Server {
        router: gateway.router(),
        head_within: table.read_header_within,
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
            accepted = accept(&listener, &connections) => accepted,
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
    drop(listener);
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

/// A connection, once there is room for one; `None` if it was none.
async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(connections).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => Some((stream, place)),
        Err(error) => {
            // Out of descriptors, most likely: some will come back.
            tracing::warn!(%error, "a connection could not be taken");
            sleep(Duration::from_millis(50)).await;
            None
        }
    }
}

struct Server {
    router: Router,
    head_within: Duration,
    graceful: GracefulShutdown,
}

impl Server {
    fn connection(
        &self,
        stream: TcpStream,
    ) -> impl Future<Output = Result<(), hyper::Error>> + use<> {
        stream.set_nodelay(true).ok();
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(WRITE_WITHIN));
        let service = TowerToHyperService::new(self.router.clone());
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.head_within)
            .max_buf_size(LARGEST_HEAD)
            .serve_connection(TokioIo::new(Box::pin(stream)), service);
        self.graceful.watch(connection)
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
