//! A real server on loopback that streams as told, and counts what is open.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use spillway_tests::Open;
use tokio::{net::TcpListener, task::JoinHandle};

use super::{Do, Told};

/// What a server answers.
#[derive(Clone, Debug)]
pub struct Script {
    pub content_type: &'static str,
    pub steps: Vec<Do>,
}

impl Script {
    pub fn stream(steps: impl Into<Vec<Do>>) -> Self {
        Self {
            content_type: "text/event-stream",
            steps: steps.into(),
        }
    }

    pub fn json(body: &'static str) -> Self {
        Self {
            content_type: "application/json",
            steps: vec![Do::Send(Bytes::from_static(body.as_bytes()))],
        }
    }
}

pub struct Server {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
    bodies: Arc<AtomicUsize>,
    accept: JoinHandle<()>,
}

impl Server {
    /// Gives every request the same stream.
    pub async fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counts: [Arc<AtomicUsize>; 3] = Default::default();
        let [requests, connections, bodies] = counts;
        let counts = (requests.clone(), connections.clone(), bodies.clone());
        let accept = tokio::spawn(async move {
            let (requests, connections, bodies) = counts;
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let open = Open::new(&connections);
                let (requests, bodies, script) = (requests.clone(), bodies.clone(), script.clone());
                let service = service_fn(move |_: Request<Incoming>| {
                    requests.fetch_add(1, Ordering::SeqCst);
                    let body = Told::counted(script.steps.clone(), &bodies);
                    let response = Response::builder()
                        .header("content-type", script.content_type)
                        .body(body);
                    async move { response }
                });
                let serve = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(async move {
                    let _open = open;
                    let _ = serve.await;
                });
            }
        });
        Self {
            address,
            requests,
            connections,
            bodies,
            accept,
        }
    }

    pub fn uri(&self) -> Uri {
        format!("http://{}/v1/chat/completions", self.address)
            .parse()
            .unwrap()
    }

    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Waits until no answer is being sent and no connection is open.
    pub async fn closed(&self) {
        let closed = async {
            while self.bodies.load(Ordering::SeqCst) > 0 || self.connections() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(5), closed)
            .await
            .unwrap_or_else(|_| panic!("{} connections are open", self.connections()));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

/// A client that keeps no idle connection, so that an open one is one in use.
pub fn client() -> Client<HttpConnector, Full<Bytes>> {
    Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(0)
        .build_http()
}
