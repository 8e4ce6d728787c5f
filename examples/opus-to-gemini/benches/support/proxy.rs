//! Two proxies that a bench starts beside itself, as the same program with other arguments: one that
//! passes everything through, and the same one over the stack.

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::Response,
    serve::ListenerExt,
};
use bytes::Bytes;
use clap::ValueEnum;
use http::Uri;
use http_body_util::Full;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use opus_to_gemini::pipeline::Pipeline;
use tokio::net::TcpListener;
use tower::ServiceExt;
use tower_spillway_core::BoxError;

use super::{process::Server, stack};

/// What makes a bench's program a proxy, and nothing else.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[arg(long, hide = true, requires = "upstream")]
    proxy: Option<Proxy>,
    #[arg(long, hide = true)]
    upstream: Option<String>,
}

impl Args {
    pub fn is_asked_for(&self) -> bool {
        self.proxy.is_some()
    }

    /// Until the process is killed.
    pub async fn serve(&self) -> Result<(), BoxError> {
        match (self.proxy, &self.upstream) {
            (Some(proxy), Some(upstream)) => serve(proxy, upstream).await,
            _ => Ok(()),
        }
    }
}

/// `pass-through` or `stack`, in a process of its own.
pub fn start(name: &str, upstream: &str) -> Result<Server, BoxError> {
    Server::this(&["--proxy", name, "--upstream", upstream])
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Proxy {
    PassThrough,
    Stack,
}

async fn serve(proxy: Proxy, upstream: &str) -> Result<(), BoxError> {
    let app = match proxy {
        Proxy::PassThrough => {
            let mut connector = HttpConnector::new();
            connector.set_nodelay(true);
            let client = Client::builder(TokioExecutor::new()).build(connector);
            Router::new()
                .fallback(pass)
                .with_state((client, upstream.parse::<Uri>()?))
        }
        Proxy::Stack => Router::new()
            .fallback(through_the_stack)
            .with_state(stack::pipeline(upstream, 1 << 16)?),
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap());
    Ok(axum::serve(listener, app).await?)
}

async fn pass(
    State((client, to)): State<(Client<HttpConnector, Body>, Uri)>,
    mut request: Request,
) -> Response {
    *request.uri_mut() = to;
    client.request(request).await.unwrap().map(Body::new)
}

async fn through_the_stack(State(pipeline): State<Pipeline>, body: Bytes) -> Response {
    let request = http::Request::new(Full::new(body));
    pipeline.oneshot(request).await.unwrap().map(Body::new)
}
