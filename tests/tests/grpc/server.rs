//! A real gRPC server over HTTP/2 on loopback, message by message as told.

use std::{
    io::Error,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use spillway_tests::Open;
use tokio::{
    net::TcpListener,
    sync::{
        Notify,
        mpsc::{Receiver, Sender, channel},
    },
    task::JoinHandle,
    time::sleep,
};

pub(super) type Fields = &'static [(&'static str, &'static str)];

/// What follows the head of an answer, which is always that of a success.
#[derive(Clone, Copy)]
pub(super) enum Act {
    /// So many messages and these trailers.
    End(usize, Fields),
    /// A message and these trailers, once the server is told to go on.
    Late(Fields),
    /// The stream is reset.
    Reset,
    /// Nothing, ever.
    Stall,
}

pub(super) const MESSAGE: &[u8] = b"\0\0\0\0\x02hi";

pub(super) struct Server {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
    told: Arc<Notify>,
    accept: JoinHandle<()>,
}

impl Server {
    /// Answers the first requests so, and every other one as the last.
    pub(super) async fn start(acts: &[Act]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, open) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let told = Arc::new(Notify::new());
        let counts = (requests.clone(), open.clone(), told.clone());
        let acts: Arc<[Act]> = acts.into();
        let accept = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let ((requests, open, told), acts) = (counts.clone(), acts.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let turn = requests.fetch_add(1, Ordering::SeqCst);
                    let act = acts[turn.min(acts.len() - 1)];
                    answer(request, act, Open::new(&open), told.clone())
                });
                let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                tokio::spawn(builder.serve_connection(TokioIo::new(stream), service));
            }
        });
        Self {
            address,
            requests,
            open,
            told,
            accept,
        }
    }

    pub(super) fn uri(&self) -> Uri {
        let uri = format!("http://{}/helloworld.Greeter/SayHello", self.address);
        uri.parse().unwrap()
    }

    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// Lets one late answer go on.
    pub(super) fn go_on(&self) {
        self.told.notify_one();
    }

    /// Waits until no answer is being sent.
    pub(super) async fn closed(&self) {
        let closed = async {
            while self.open.load(Ordering::SeqCst) > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let closed = tokio::time::timeout(Duration::from_secs(5), closed).await;
        assert!(closed.is_ok(), "a stream is open");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accept.abort();
    }
}

/// Frames as they are sent.
struct Told(Receiver<Said>);

type Said = Result<Frame<Bytes>, Error>;

impl Body for Told {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Said>> {
        self.0.poll_recv(cx)
    }
}

async fn answer(
    request: Request<Incoming>,
    act: Act,
    open: Open,
    told_to: Arc<Notify>,
) -> Result<Response<Told>, hyper::Error> {
    request.into_body().collect().await?;
    let (send, told) = channel(1);
    tokio::spawn(async move {
        let _open = open;
        tokio::select! {
            () = send.closed() => {}
            () = play(act, &told_to, &send) => {}
        }
    });
    let mut response = Response::new(Told(told));
    let grpc = HeaderValue::from_static("application/grpc");
    response.headers_mut().insert("content-type", grpc);
    Ok(response)
}

async fn play(act: Act, told: &Notify, to: &Sender<Said>) {
    let message = || Ok(Frame::data(Bytes::from_static(MESSAGE)));
    let last = match act {
        Act::End(messages, with) => {
            for _ in 0..messages {
                let _ = to.send(message()).await;
            }
            Ok(Frame::trailers(fields(with)))
        }
        Act::Late(with) => {
            told.notified().await;
            let _ = to.send(message()).await;
            Ok(Frame::trailers(fields(with)))
        }
        // A server that resets drops what it has not written yet.
        Act::Reset => {
            sleep(Duration::from_millis(20)).await;
            Err(Error::from(std::io::ErrorKind::ConnectionReset))
        }
        Act::Stall => return std::future::pending().await,
    };
    let _ = to.send(last).await;
}

fn fields(fields: Fields) -> HeaderMap {
    let field = |(name, value): &(&'static str, &'static str)| {
        let name = HeaderName::from_static(name);
        (name, HeaderValue::from_static(value))
    };
    fields.iter().map(field).collect()
}
