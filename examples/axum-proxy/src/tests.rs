use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::sync::mpsc;

use super::*;

/// A body whose chunks come one by one.
struct Chunks(mpsc::UnboundedReceiver<&'static str>);

impl http_body::Body for Chunks {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let next = self.0.poll_recv(cx);
        next.map(|chunk| Some(Ok(Frame::data(Bytes::from_static(chunk?.as_bytes())))))
    }
}

async fn serve(app: Router) -> Result<Uri, BoxError> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let uri = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(uri.parse()?)
}

/// A proxy before an upstream that turns away the first request and echoes after it.
async fn before_an_echo() -> Result<(Uri, Arc<AtomicU32>), BoxError> {
    let requests = Arc::new(AtomicU32::new(0));
    let count = requests.clone();
    let echo = Router::new().fallback(move |body: String| async move {
        match count.fetch_add(1, Ordering::SeqCst) {
            0 => StatusCode::SERVICE_UNAVAILABLE.into_response(),
            _ => body.into_response(),
        }
    });
    let proxy = serve(proxy(serve(echo).await?)).await?;
    Ok((proxy, requests))
}

async fn post(uri: Uri, body: Body) -> Result<(StatusCode, Bytes), BoxError> {
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(Request::post(uri).body(body)?).await?;
    let status = response.status();
    Ok((status, response.into_body().collect().await?.to_bytes()))
}

#[tokio::test]
async fn a_streamed_upload_is_sent_again() -> Result<(), BoxError> {
    let (proxy, requests) = before_an_echo().await?;
    let (send, chunks) = mpsc::unbounded_channel();
    let call = tokio::spawn(post(proxy, Body::new(Chunks(chunks))));
    for chunk in ["one, ", "two, ", "three"] {
        send.send(chunk)?;
        tokio::task::yield_now().await;
    }
    drop(send);
    let (status, body) = call.await??;
    assert_eq!((status, &*body), (StatusCode::OK, &b"one, two, three"[..]));
    assert_eq!(requests.load(Ordering::SeqCst), 2);
    Ok(())
}

#[tokio::test]
async fn an_upload_over_the_limit_is_sent_once() -> Result<(), BoxError> {
    let (proxy, requests) = before_an_echo().await?;
    let (status, _) = post(proxy, Body::from(vec![b'x'; 100_000])).await?;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(requests.load(Ordering::SeqCst), 1);
    Ok(())
}

#[tokio::test]
async fn the_answer_streams() -> Result<(), BoxError> {
    let (send, chunks) = mpsc::unbounded_channel();
    let body = Arc::new(Mutex::new(Some(Body::new(Chunks(chunks)))));
    let upstream = Router::new().fallback(async move || {
        let body = body.lock().ok().and_then(|mut body| body.take());
        body.unwrap_or_default()
    });
    let proxy = serve(proxy(serve(upstream).await?)).await?;
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    send.send("first")?;
    let mut body = client.get(proxy).await?.into_body();
    // The upstream is not done, and the first chunk is here.
    for chunk in ["first", "second"] {
        let frame = body.frame().await.ok_or("ended")??;
        assert_eq!(frame.into_data().ok().as_deref(), Some(chunk.as_bytes()));
        send.send("second")?;
    }
    Ok(())
}
