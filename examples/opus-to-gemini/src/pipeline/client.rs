//! The client at the bottom, and its connections.

use std::{
    sync::{Arc, PoisonError, RwLock},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{self, Client, ResponseFuture, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use tower::{ServiceBuilder, ServiceExt, util::BoxCloneSyncService};
use tower_http::timeout::ResponseBodyTimeoutLayer;
use tower_service::Service;
use tower_spillway_core::BoxError;

use super::{error::BuildError, own::AnyClient, slots::Slots, stack::ChatRequest};
use crate::config;

type Connector = HttpsConnector<Slots<TimeoutConnector<HttpConnector>>>;
type HttpClient = Client<Connector, Full<Bytes>>;

/// A client whose pool can be left behind.
///
/// Clones share the pool, and that of one target takes nothing from another.
#[derive(Clone)]
pub(super) struct Pooled(Arc<Shared>);

struct Shared {
    connector: Connector,
    settings: config::Pool,
    current: RwLock<Generation>,
}

/// A pool and its number.
struct Generation {
    number: u64,
    client: HttpClient,
}

/// The client at the bottom, and its pool where it is ours.
#[derive(Clone)]
pub(super) struct Bottom {
    pub(super) client: AnyClient,
    pub(super) pool: Option<Pooled>,
}

impl Bottom {
    /// The user's own, or one with a pool.
    pub(super) fn new(
        own: Option<&AnyClient>,
        settings: &config::Pool,
        roots: &Arc<RootCertStore>,
    ) -> Result<Self, BuildError> {
        if let Some(client) = own {
            return Ok(Self {
                client: client.clone(),
                pool: None,
            });
        }
        let pool = Pooled::new(settings, roots)?;
        let client = ServiceBuilder::new()
            .map_response(|response: Response<_>| {
                response.map(|body: tower_http::timeout::TimeoutBody<_>| body.boxed_unsync())
            })
            .layer(ResponseBodyTimeoutLayer::new(settings.read_idle))
            .service(pool.clone())
            .map_err(BoxError::from);
        Ok(Self {
            client: BoxCloneSyncService::new(client),
            pool: Some(pool),
        })
    }
}

impl Pooled {
    fn new(settings: &config::Pool, roots: &Arc<RootCertStore>) -> Result<Self, rustls::Error> {
        let connector = connector(settings, roots)?;
        let first = Generation {
            number: 0,
            client: client(&connector, settings),
        };
        Ok(Self(Arc::new(Shared {
            connector,
            settings: settings.clone(),
            current: RwLock::new(first),
        })))
    }

    /// The number of the pool that a request gets its connection from now.
    pub(super) fn generation(&self) -> u64 {
        let current = self.0.current.read();
        current.unwrap_or_else(PoisonError::into_inner).number
    }

    /// Leaves the connections of that pool, and all older ones, behind. Requests under way keep
    /// theirs.
    ///
    /// A connection that nothing comes through any more looks like any idle one. So after an
    /// attempt that timed out no connection is used that was open before.
    pub(super) fn leave(&self, number: u64) {
        let current = self.0.current.write();
        let mut current = current.unwrap_or_else(PoisonError::into_inner);
        // Of many attempts that time out together the first has done it.
        if current.number == number {
            *current = Generation {
                number: number.wrapping_add(1),
                client: client(&self.0.connector, &self.0.settings),
            };
        }
    }
}

impl Service<ChatRequest> for Pooled {
    type Response = Response<Incoming>;
    type Error = legacy::Error;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), legacy::Error>> {
        // A client of hyper-util always is.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ChatRequest) -> ResponseFuture {
        let current = self.0.current.read();
        let current = current.unwrap_or_else(PoisonError::into_inner);
        current.client.request(request)
    }
}

fn connector(
    settings: &config::Pool,
    roots: &Arc<RootCertStore>,
) -> Result<Connector, rustls::Error> {
    let mut http = HttpConnector::new();
    // The TLS connector asks it for `https` addresses.
    http.enforce_http(false);
    http.set_nodelay(true);
    let mut timed = TimeoutConnector::new(http);
    timed.set_connect_timeout(Some(settings.connect));
    timed.set_write_timeout(Some(settings.write));
    // The provider is named: with two of them in one program rustls would have no default.
    let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(Arc::clone(roots))
        .with_no_client_auth();
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .enable_http2()
        .wrap_connector(Slots::new(timed, settings.connections)))
}

fn client(connector: &Connector, settings: &config::Pool) -> HttpClient {
    Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(settings.idle_timeout)
        .pool_max_idle_per_host(usize::try_from(settings.idle).unwrap_or(usize::MAX))
        .http2_keep_alive_interval(settings.keep_alive)
        .http2_keep_alive_timeout(settings.keep_alive_timeout)
        .http2_keep_alive_while_idle(true)
        .build(connector.clone())
}
