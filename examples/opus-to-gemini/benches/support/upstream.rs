//! An upstream that does as little as a chat endpoint can, so that what is measured is not its own.

use std::{io, net::SocketAddr, thread, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt, Either, Full, channel::Channel};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, runtime, time::sleep};

/// How an answer comes.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Its length; a stream has an event for each token.
    pub tokens: usize,
    /// Between two events.
    pub gap: Duration,
}

/// Answers every request, in one piece or as a stream of events, on a thread of its own until the
/// program ends.
#[derive(Clone, Copy, Debug)]
pub struct Upstream(SocketAddr);

impl Upstream {
    pub fn start(pace: Pace) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        thread::spawn(move || {
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener)?;
                loop {
                    let (stream, _) = listener.accept().await?;
                    stream.set_nodelay(true)?;
                    let service = service_fn(move |request| answer(request, pace));
                    let io = TokioIo::new(stream);
                    // Who leaves in the middle ends the connection in an error.
                    tokio::spawn(http1::Builder::new().serve_connection(io, service));
                }
                #[expect(unreachable_code, reason = "the type of the block")]
                io::Result::Ok(())
            })
        });
        Ok(Self(address))
    }

    /// Of its chat endpoint.
    pub fn url(self) -> String {
        format!("http://{}/v1/chat/completions", self.0)
    }
}

type Answer = Either<Full<Bytes>, Channel<Bytes>>;

async fn answer(request: Request<Incoming>, pace: Pace) -> Result<Response<Answer>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    let (kind, answer) = if asks_for_a_stream(&body) {
        ("text/event-stream", Either::Right(stream(pace)))
    } else {
        ("application/json", Either::Left(Full::new(whole(pace))))
    };
    let mut response = Response::new(answer);
    let kind = HeaderValue::from_static(kind);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    Ok(response)
}

/// The benches' requests say it last, and the stack keeps the order of fields.
fn asks_for_a_stream(body: &[u8]) -> bool {
    let text = br#""stream":true"#;
    body.windows(text.len()).any(|part| part == text)
}

fn whole(pace: Pace) -> Bytes {
    let text = "token ".repeat(pace.tokens);
    format!(
        r#"{{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":1,"completion_tokens":{0},"total_tokens":{0}}}}}"#,
        pace.tokens
    )
    .into()
}

fn stream(pace: Pace) -> Channel<Bytes> {
    let (mut sender, body) = Channel::new(4);
    tokio::spawn(async move {
        let role = event(r#"{"role":"assistant","content":""}"#, "null");
        sender.send_data(role).await.ok()?;
        for n in 0..pace.tokens {
            if n > 0 && !pace.gap.is_zero() {
                sleep(pace.gap).await;
            }
            let token = event(r#"{"content":"token "}"#, "null");
            sender.send_data(token).await.ok()?;
        }
        sender.send_data(event("{}", r#""stop""#)).await.ok()?;
        let done = Bytes::from_static(b"data: [DONE]\n\n");
        sender.send_data(done).await.ok()
    });
    body
}

fn event(delta: &str, end: &str) -> Bytes {
    format!(
        "data: {{\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{end}}}]}}\n\n"
    )
    .into()
}
