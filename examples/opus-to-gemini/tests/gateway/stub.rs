//! A target that answers as a test says, and remembers what it was asked.

use std::sync::{Arc, Mutex};

use axum::{Router, body::Body, extract::Request, response::Response};
use http::HeaderMap;
use opus_to_gemini::config::{Config, Route, Target};
use tokio::{net::TcpListener, task::JoinHandle};

/// What came: headers and body.
pub(crate) type Asked = (HeaderMap, Vec<u8>);

pub(crate) struct Stub {
    url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    server: JoinHandle<()>,
}

impl Stub {
    /// Each answer is what `answer` makes of the request's headers.
    pub(crate) async fn start(
        answer: impl Fn(&HeaderMap) -> Response<Body> + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/chat", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let router = Router::new().fallback(move |request: Request| async move {
            let (head, body) = request.into_parts();
            let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
            let answer = answer(&head.headers);
            log.lock().unwrap().push((head.headers, body.to_vec()));
            answer
        });
        let server = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, asked, server }
    }

    /// Makes it the only target of the model `stub`.
    pub(crate) fn join(&self, config: &mut Config) {
        let target = Target {
            url: self.url.clone(),
            model: "stub-model".into(),
            key_env: "GEMINI_API_KEY".into(),
            ..Target::default()
        };
        config.targets.insert("stub".into(), target);
        config
            .routes
            .insert("stub".into(), Route::To("stub".into()));
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.server.abort();
    }
}
