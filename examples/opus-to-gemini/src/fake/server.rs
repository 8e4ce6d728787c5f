//! The HTTP side of a fake vendor.

use std::{convert::Infallible, future::Future, io, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::{rt::TokioIo, server::graceful::GracefulShutdown};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
    time::{sleep, timeout},
};
use tower_spillway_core::BoxError;

use super::{
    behaviour::Behaviour,
    log::Did,
    played,
    reply::Reply,
    script::Scripted,
    state::{Connected, State, Writing},
};

/// Requests under way may take this long after a stop. A hung one would take for ever.
const GRACE: Duration = Duration::from_millis(500);

/// Accepts until `stop` speaks or is dropped.
pub(super) async fn serve(
    listener: TcpListener,
    state: Arc<State>,
    mut stop: oneshot::Receiver<()>,
) {
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            biased;
            _ = &mut stop => break,
            // Reaped here, so that a long life does not collect the dead.
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // Out of descriptors, most likely: some will come back.
                Err(_) => {
                    sleep(Duration::from_millis(10)).await;
                    continue;
                }
            },
        };
        let connection = graceful.watch(connection(stream, &state));
        let connected = Connected::new(&state);
        connections.spawn(async move {
            let _connected = connected;
            // A reset and a cut end the connection in an error: that is their purpose.
            connection.await.ok();
        });
    }
    drop(listener);
    timeout(GRACE, graceful.shutdown()).await.ok();
    connections.shutdown().await;
}

fn connection(
    stream: TcpStream,
    state: &Arc<State>,
) -> http1::Connection<TokioIo<TcpStream>, Serve> {
    stream.set_nodelay(true).ok();
    http1::Builder::new().serve_connection(TokioIo::new(stream), Serve(Arc::clone(state)))
}

type AnyBody = UnsyncBoxBody<Bytes, BoxError>;

/// The service of one connection.
pub(super) struct Serve(Arc<State>);

impl hyper::service::Service<Request<Incoming>> for Serve {
    type Response = Response<AnyBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let state = Arc::clone(&self.0);
        Box::pin(async move { respond(&state, request).await })
    }
}

async fn respond(
    state: &Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<AnyBody>, BoxError> {
    let (head, body) = request.into_parts();
    let key = state.whose(&head.headers);
    let entry = Writing::arrived(state, key.clone(), &head.headers);
    let body = body.collect().await?.to_bytes();

    let checked = state.vendor.check(&head, &key, &body);
    let chat = match checked {
        Ok(chat) => chat.of_words(state.script().words),
        Err(reply) => return Ok(whole(entry, &reply)),
    };
    entry.asks(&chat);
    let (behaviour, latency) = state.turn();
    if behaviour.answers() {
        sleep(latency).await;
    }
    let reply = match behaviour {
        Behaviour::Throttle { retry_after } => state.vendor.throttled(retry_after),
        Behaviour::Exhausted => state.vendor.exhausted(),
        Behaviour::Fail { status } => state.vendor.failed(status),
        Behaviour::RefuseInStream { status } if !chat.streams() => state.vendor.failed(status),
        Behaviour::ErrorAs200 => Reply::json(200, &Reply::refusal(529)),
        // `entry` is written when the connection drops this future.
        Behaviour::Hang => match std::future::pending::<Infallible>().await {},
        Behaviour::Reset => {
            entry.did(Did::Reset);
            // At an error from its service the server closes the connection without an answer.
            return Err(io::Error::from(io::ErrorKind::ConnectionReset).into());
        }
        _ => state.vendor.answer(&chat),
    };
    if let Some((steps, did)) = played::steps(behaviour, &reply) {
        return Ok(reply.head(Scripted::new(steps, entry, did).boxed_unsync()));
    }
    if behaviour.answers() {
        entry.told(&chat);
    }
    let over = state.script().stream;
    if !reply.events.is_empty() && !over.is_zero() {
        let does = Did::Answered(reply.status);
        let body = Scripted::spread(&reply.events, over, entry, does);
        return Ok(reply.head(body.boxed_unsync()));
    }
    Ok(whole(entry, &reply))
}

fn whole(entry: Writing, reply: &Reply) -> Response<AnyBody> {
    entry.did(Did::Answered(reply.status));
    let body = Full::new(reply.body.clone());
    reply.head(
        body.map_err(|never: Infallible| match never {})
            .boxed_unsync(),
    )
}
