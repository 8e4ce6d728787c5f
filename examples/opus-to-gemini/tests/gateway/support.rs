//! A gateway on a free port, and a client that is no SDK.

use std::{future::pending, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use opus_to_gemini::{
    config::Config,
    fake::{FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, Fakes},
    gateway::Gateway,
};
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use tower_spillway_core::Chance;

pub(crate) const PLENTY: Duration = Duration::from_secs(60);

/// A key of a caller's, where callers are asked for one.
pub(crate) const CALLER_KEY: &str = "caller-key-1";

pub(crate) struct Served {
    pub(crate) fakes: Fakes,
    pub(crate) gateway: Gateway,
    pub(crate) config: Config,
    pub(crate) address: SocketAddr,
    client: Client<HttpConnector, Full<Bytes>>,
    stop: Option<oneshot::Sender<()>>,
    now: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

pub(crate) fn key(variable: &str) -> Option<SecretString> {
    let key = match variable {
        "ANTHROPIC_API_KEY" => FAKE_ANTHROPIC_KEY,
        "GEMINI_API_KEY" => FAKE_GEMINI_KEY,
        "CALLER_KEYS" => "another-key, caller-key-1",
        _ => return None,
    };
    Some(key.into())
}

/// The profile's figures, with the fakes in the place of the vendors.
pub(crate) fn config(fakes: &Fakes) -> Config {
    let mut config = Config::interactive();
    for (name, fake) in [("opus", &fakes.anthropic), ("gemini", &fakes.gemini)] {
        config.targets.get_mut(name).unwrap().url = fake.url();
    }
    config
}

impl Served {
    pub(crate) async fn start(change: impl FnOnce(&mut Config)) -> Self {
        let fakes = Fakes::start(&Chance::seeded(5)).await.unwrap();
        let mut config = config(&fakes);
        change(&mut config);
        let gateway = Gateway::new(&config, key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let (now, at_once) = oneshot::channel::<()>();
        let stopped = async { told(stopped).await };
        let serving = gateway
            .clone()
            .serve(listener, stopped, async { told(at_once).await });
        let serving = tokio::spawn(async move { serving.await.unwrap() });
        let mut client = Client::builder(TokioExecutor::new());
        client.pool_timer(TokioTimer::new());
        Self {
            fakes,
            gateway,
            config,
            address,
            client: client.build_http(),
            stop: Some(stop),
            now: Some(now),
            serving,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sends a request; the body of the answer is not read yet.
    pub(crate) async fn open(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        self.client.request(request).await.unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Reply {
        Reply::read(self.open(request).await).await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send(self.request(Method::GET, path, Bytes::new()))
            .await
    }

    pub(crate) fn request(
        &self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Request<Full<Bytes>> {
        let request = Request::builder().method(method).uri(self.url(path));
        let request = request.header(header::CONTENT_TYPE, "application/json");
        request.body(Full::new(body.into())).unwrap()
    }

    pub(crate) fn chat(&self, body: &Value) -> Request<Full<Bytes>> {
        self.request(Method::POST, "/v1/chat/completions", body.to_string())
    }

    /// A chat, plain.
    pub(crate) async fn ask(&self) -> Reply {
        self.send(self.chat(&hello())).await
    }

    pub(crate) async fn status(&self) -> Value {
        self.get("/status").await.json()
    }

    /// The last calls that are over, once there are so many.
    pub(crate) async fn calls(&self, so_many: usize) -> Vec<Value> {
        loop {
            let status = self.status().await;
            let calls = status["last_calls"].as_array().unwrap();
            if calls.len() >= so_many {
                return calls.clone();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until something is so; the test as a whole has its limit.
    pub(crate) async fn until(&self, so: impl Fn(&Self) -> bool) {
        while !so(self) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub(crate) fn told_to_stop(&mut self) {
        self.stop.take().unwrap().send(()).ok();
    }

    pub(crate) fn told_to_stop_now(&mut self) {
        self.now.take().unwrap().send(()).ok();
    }

    /// Waits for the server's end.
    pub(crate) async fn ended(self) {
        self.serving.await.unwrap();
    }
}

async fn told(word: oneshot::Receiver<()>) {
    if word.await.is_err() {
        pending().await
    }
}

/// A chat with the shipped model.
pub(crate) fn hello() -> Value {
    json!({"model": "claude-opus", "messages": [{"role": "user", "content": "Hello"}]})
}

pub(crate) fn streamed() -> Value {
    let mut chat = hello();
    chat["stream"] = true.into();
    chat["stream_options"] = json!({"include_usage": true});
    chat
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) async fn read(response: Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        Self {
            status: head.status,
            headers: head.headers,
            body: body.collect().await.unwrap().to_bytes(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|v| v.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The error, which must be in OpenAI's shape.
    pub(crate) fn error(&self) -> Value {
        assert_eq!(self.header("content-type"), Some("application/json"));
        let error = self.json()["error"].clone();
        for field in ["message", "type"] {
            assert!(error[field].is_string(), "{error}");
        }
        for field in ["param", "code"] {
            assert!(
                error[field].is_string() || error[field].is_null(),
                "{error}"
            );
            assert!(error.as_object().unwrap().contains_key(field), "{error}");
        }
        error
    }
}
