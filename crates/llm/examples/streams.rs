//! An upstream whose stream ends in the middle of its answer, given on as it comes and held until it is
//! complete.
//!
//! Run with `cargo run -p tower-spillway-llm --example streams`.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use tower::{ServiceBuilder, ServiceExt, service_fn};
use tower_spillway_core::{BodyEnd, BoxError, Class, Reading};
use tower_spillway_llm::{Commit, StreamBroken, StreamGuardLayer, Vendor, VendorVerdictLayer};

const CUT: &str = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n\
    data: {\"choices\":[{\"delta\":{\"content\":\"Once upon\"}}]}\n\n";

/// What a caller gets of the stream that is cut.
async fn ask(commit: Commit) -> Result<Response<Bytes>, BoxError> {
    let client = ServiceBuilder::new()
        .layer(StreamGuardLayer::new(Vendor::OpenAi).commit(commit))
        .layer(VendorVerdictLayer::new(Vendor::OpenAi))
        .service(service_fn(|_: Request<()>| async {
            let response = Response::builder().header("content-type", "text/event-stream");
            Ok::<_, BoxError>(response.body(Full::<Bytes>::from(CUT))?)
        }));
    let (head, body) = client.oneshot(Request::new(())).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Response::from_parts(head, body))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    // Given on as it comes: the caller has a part of the answer, and is told so.
    let response = ask(Commit::FirstContent).await?;
    let body = std::str::from_utf8(response.body())?;
    println!("{body}");
    let error = body.strip_prefix(CUT).ok_or("not verbatim")?;
    assert!(error.contains("\"code\":\"stream_ended_early\""));
    assert!(!body.contains("[DONE]"));
    // So is whoever counts failures outside.
    let end = response.extensions().get::<BodyEnd>().ok_or("no end")?;
    assert_eq!(end.get().map(Reading::class), Some(Class::Transient));

    // Given out when complete: a failure like any other, which the next target mends.
    let error = ask(Commit::Complete).await.err().ok_or("it was cut")?;
    let broken = tower_spillway_core::error::find::<StreamBroken>(&*error).ok_or("no cause")?;
    println!("held until complete: {broken}");
    assert_eq!(broken.why().as_str(), "stream_ended_early");
    Ok(())
}
