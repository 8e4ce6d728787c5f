//! The stack as a server: an OpenAI-compatible gateway.
//!
//! | endpoint | what it gives |
//! |---|---|
//! | `POST /v1/chat/completions` | a chat, streaming or not |
//! | `GET /v1/models`, `/v1/models/{model}` | the models that it has a chain for |
//! | `/healthz`, `/readyz` | it runs; some target can serve |
//! | `/metrics` | figures for Prometheus |
//! | `/status` | the same and more as JSON: each target, the last calls with their attempts |
//! | `/` | a page over that |
//!
//! # Example
//!
//! ```
//! use opus_to_gemini::{config::Config, gateway::Gateway};
//! use tokio::{net::TcpListener, sync::oneshot};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::interactive();
//! // Keys from wherever they are kept.
//! let gateway = Gateway::new(&config, |_| Some("a-key".into()))?;
//! let listener = TcpListener::bind("127.0.0.1:0").await?;
//! let (stop, stopped) = oneshot::channel::<()>();
//! let stopped = async { stopped.await.unwrap_or_default() };
//! let serving = tokio::spawn(gateway.serve(listener, stopped, std::future::pending()));
//! // ... until:
//! stop.send(()).ok();
//! serving.await??;
//! # Ok(())
//! # }
//! ```

mod after;
mod asked;
mod call;
mod calls;
mod chat;
mod enter;
mod error;
mod failure;
mod figures;
#[expect(clippy::module_inception, reason = "its main type")]
mod gateway;
mod headers;
mod health;
mod id;
mod keys;
mod limit;
mod metrics;
mod models;
mod origin;
mod outcome;
mod pace;
mod page;
mod queue;
mod read_body;
mod rewoken;
mod router;
mod server;
mod setup;
mod since;
mod status;
mod vendor_error;
mod wall;

pub use self::{gateway::Gateway, setup::SetupError};
