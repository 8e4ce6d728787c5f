//! Real servers on loopback that answer as told and log every request.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use tokio::{net::TcpListener, task::JoinHandle};

use super::{Body, Res};

/// What a server does with a request.
pub enum Act {
    Answer(Res),
    /// Closes the connection without an answer.
    Reset,
    /// Never answers.
    Hang,
}

/// One request, as it came in.
#[derive(Clone, Debug)]
pub struct Seen {
    pub headers: HeaderMap,
    pub body: bytes::Bytes,
    /// The status answered; `None` for a reset or a hang.
    pub status: Option<u16>,
}

pub struct Server {
    pub address: SocketAddr,
    log: Arc<Mutex<Vec<Seen>>>,
    accept: JoinHandle<()>,
}

impl Server {
    pub async fn start(act: impl Fn(&Request<()>) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (act, seen) = (Arc::new(act), log.clone());
        let accept = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (act, seen) = (act.clone(), seen.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (act, seen) = (act.clone(), seen.clone());
                    async move { serve(request, &*act, &seen).await }
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Self {
            address,
            log,
            accept,
        }
    }

    pub fn uri(&self, path: &str) -> http::Uri {
        format!("http://{}{path}", self.address).parse().unwrap()
    }

    pub fn log(&self) -> Vec<Seen> {
        self.log.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

async fn serve(
    request: Request<Incoming>,
    act: &(dyn Fn(&Request<()>) -> Act + Send + Sync),
    log: &Mutex<Vec<Seen>>,
) -> Result<Res, std::io::Error> {
    let (parts, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map_err(std::io::Error::other)?
        .to_bytes();
    let request = Request::from_parts(parts, ());
    let act = act(&request);
    log.lock().unwrap().push(Seen {
        headers: request.headers().clone(),
        body,
        status: match &act {
            Act::Answer(response) => Some(response.status().as_u16()),
            Act::Reset | Act::Hang => None,
        },
    });
    match act {
        Act::Answer(response) => Ok(response),
        Act::Reset => Err(std::io::Error::other("reset")),
        Act::Hang => {
            std::future::pending::<Infallible>().await;
            Ok(Response::new(Full::default()))
        }
    }
}

/// A plain HTTP client.
pub fn client() -> Client<HttpConnector, Body> {
    Client::builder(TokioExecutor::new()).build_http()
}

pub fn status_of(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap()
}
