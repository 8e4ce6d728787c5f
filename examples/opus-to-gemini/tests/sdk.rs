//! The real SDKs of OpenAI against the gateway and the fake vendors.
//!
//! Needs Python with the packages of `sdk/requirements.txt`, and Node with those of
//! `sdk/package.json`: `SDK_PYTHON` is the interpreter, `SDK_NODE_HOME` the folder that holds
//! `node_modules`. `.ci/run` installs both and sets them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test may"
)]

use std::{env, path::Path, process::Stdio, time::Duration};

use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use opus_to_gemini::{
    config::Config,
    fake::{Behaviour, FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, Fakes},
    gateway::Gateway,
};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    process::{Child, Command},
    sync::oneshot,
    task::JoinHandle,
};
use tower_spillway_core::Chance;

/// A gateway over fake vendors.
struct World {
    fakes: Fakes,
    url: String,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

const INBOUND: &str = "a-callers-key";

impl World {
    async fn start() -> Self {
        let fakes = Fakes::start(&Chance::seeded(1)).await.unwrap();
        let mut config = Config::interactive().at_speed(50);
        config.gateway.inbound_keys_env = "INBOUND".into();
        for (name, vendor) in [("opus", &fakes.anthropic), ("gemini", &fakes.gemini)] {
            let target = config.targets.get_mut(name).unwrap();
            target.url = vendor.url();
            target.plain_within = Duration::from_secs(30);
            target.streaming_within = Duration::from_secs(30);
        }
        config.call.plain_deadline = Some(Duration::from_secs(30));
        config.call.streaming_deadline = Some(Duration::from_secs(30));
        config.stream.idle = Duration::from_secs(30);
        let keys = |name: &str| {
            let key = match name {
                "ANTHROPIC_API_KEY" => FAKE_ANTHROPIC_KEY,
                "GEMINI_API_KEY" => FAKE_GEMINI_KEY,
                _ => INBOUND,
            };
            Some(key.into())
        };
        let gateway = Gateway::new(&config, keys).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async move {
            let stopped = async { stopped.await.unwrap_or_default() };
            gateway
                .serve(listener, stopped, std::future::pending())
                .await
                .unwrap();
        });
        Self {
            fakes,
            url,
            stop,
            serving,
        }
    }

    /// A scenario of one SDK, under way.
    fn begin(&self, sdk: Sdk, scenario: &str, serves: &str, target: &str) -> Child {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk");
        let set = |name: &str| env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
        let mut command = match sdk {
            Sdk::Python => {
                let mut command = Command::new(set("SDK_PYTHON"));
                command.arg(here.join("client.py"));
                command
            }
            Sdk::Node => {
                let mut command = Command::new("node");
                command.arg(here.join("client.mjs"));
                command.env("NODE_HOME", set("SDK_NODE_HOME"));
                command
            }
        };
        command
            .arg(scenario)
            .env("GATEWAY_URL", format!("{}/v1", self.url))
            .env("GATEWAY_KEY", INBOUND)
            .env("SERVES", serves)
            .env("TARGET", target)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    }

    async fn play(&self, sdk: Sdk, scenario: &str, serves: &str, target: &str) {
        let mut child = self.begin(sdk, scenario, serves, target);
        let ended = tokio::time::timeout(Duration::from_secs(60), child.wait()).await;
        let ended = ended.unwrap_or_else(|_| panic!("{sdk:?} {scenario} hangs"));
        assert!(ended.unwrap().success(), "{sdk:?} {scenario}");
    }

    /// The calls that reached the gateway.
    async fn calls(&self) -> Vec<Value> {
        let client = Client::builder(TokioExecutor::new()).build_http::<Full<&[u8]>>();
        let status = Request::get(format!("{}/status", self.url))
            .header("authorization", format!("Bearer {INBOUND}"))
            .body(Full::default())
            .unwrap();
        let answer = client.request(status).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        let status: Value = serde_json::from_slice(&body).unwrap();
        status["last_calls"].as_array().unwrap().clone()
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.serving.await.unwrap();
        self.fakes.stop().await;
    }
}

#[derive(Clone, Copy, Debug)]
enum Sdk {
    Python,
    Node,
}

const SDKS: [Sdk; 2] = [Sdk::Python, Sdk::Node];

#[tokio::test]
async fn plain_streamed_and_with_tools_from_the_primary() {
    for sdk in SDKS {
        let world = World::start().await;
        for scenario in ["plain", "stream", "tools", "streamed_tools", "models"] {
            world.play(sdk, scenario, "claude-opus-5", "opus").await;
        }
        assert!(world.fakes.gemini.log().is_empty());
        world.stop().await;
    }
}

#[tokio::test]
async fn the_same_from_the_fallback_while_the_primary_is_down() {
    for sdk in SDKS {
        let world = World::start().await;
        world.fakes.anthropic.set(Behaviour::Fail { status: 529 });
        for scenario in ["plain", "stream", "tools", "streamed_tools"] {
            world.play(sdk, scenario, "gemini-2.5-pro", "gemini").await;
        }
        world.stop().await;
    }
}

#[tokio::test]
async fn errors_are_the_sdks_own_types_and_a_failing_call_reaches_the_gateway_once() {
    for sdk in SDKS {
        for (scenario, calls) in [
            ("unknown_model", 1),
            ("bad_request", 2),
            ("all_out", 1),
            ("not_served", 0),
            ("wrong_key", 0),
        ] {
            let world = World::start().await;
            if scenario == "all_out" {
                world.fakes.anthropic.set(Behaviour::Fail { status: 529 });
                world.fakes.gemini.set(Behaviour::Fail { status: 503 });
            }
            world.play(sdk, scenario, "", "").await;
            let seen = world.calls().await;
            assert_eq!(seen.len(), calls, "{sdk:?} {scenario}: {seen:?}");
            world.stop().await;
        }
    }
}

#[tokio::test]
async fn a_stream_that_breaks_is_an_error_of_the_sdk() {
    for sdk in SDKS {
        let world = World::start().await;
        world.fakes.anthropic.set_words(60);
        world.fakes.anthropic.set(Behaviour::CutAfter { words: 40 });
        world.play(sdk, "broken_stream", "", "").await;
        assert_eq!(world.calls().await.len(), 1);
        world.stop().await;
    }
}

#[tokio::test]
async fn a_stream_that_is_closed_is_cancelled_upstream() {
    for sdk in SDKS {
        let world = World::start().await;
        world.fakes.anthropic.set_stream(Duration::from_secs(60));
        let mut child = world.begin(sdk, "cancel", "", "");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = tokio::time::timeout(Duration::from_secs(60), lines.next_line()).await;
        assert_eq!(line.unwrap().unwrap().as_deref(), Some("closed"), "{sdk:?}");
        let left = async {
            while world.fakes.anthropic.connections() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let left = tokio::time::timeout(Duration::from_secs(10), left).await;
        assert!(left.is_ok(), "{sdk:?}: the upstream is still being read");
        child.stdin.take().unwrap().write_all(b"\n").await.unwrap();
        assert!(child.wait().await.unwrap().success());
        world.stop().await;
    }
}
