use std::sync::{Arc, Mutex};

use axum::{Router, http::StatusCode};

use super::*;

/// A server that gives these statuses in turn, and then the length of what it was sent.
async fn serve(first: &'static [StatusCode]) -> Result<String, BoxError> {
    let turns = Arc::new(Mutex::new(first.iter()));
    let app = Router::new().fallback(async move |body: String| {
        let turn = turns.lock().ok().and_then(|mut turns| turns.next());
        match turn {
            Some(status) => Err(*status),
            None => Ok(body.len().to_string()),
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(url)
}

/// This file, and its length.
async fn file() -> Result<(tokio::fs::File, u64), BoxError> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tests.rs");
    let file = tokio::fs::File::open(path).await?;
    let length = file.metadata().await?.len();
    Ok((file, length))
}

#[tokio::test]
async fn a_streamed_file_is_sent_again_whole() -> Result<(), BoxError> {
    let failing = &[StatusCode::SERVICE_UNAVAILABLE, StatusCode::BAD_GATEWAY];
    let url = serve(failing).await?;
    let (file, length) = file().await?;
    let (response, report) = upload(stack(Client::new()), &url, file).await?;
    assert_eq!(response.text().await?, length.to_string());
    assert_eq!(report.ok_or("no report")?.sends(), 3);
    Ok(())
}

#[tokio::test]
async fn a_fault_of_the_caller_is_given_back_at_once() -> Result<(), BoxError> {
    let url = serve(&[StatusCode::UNPROCESSABLE_ENTITY]).await?;
    let (response, report) = upload(stack(Client::new()), &url, "text").await?;
    assert_eq!(response.status(), 422);
    assert_eq!(report.ok_or("no report")?.sends(), 1);
    Ok(())
}

#[tokio::test]
async fn what_reqwest_says_of_a_connection_is_understood() -> Result<(), BoxError> {
    let ledger = Ledger::new();
    // A POST is sent again only where it cannot have been processed.
    let mut request = Request::post("http://127.0.0.1:1/").body(Body::from("text"))?;
    request.extensions_mut().insert(ledger.clone());
    let error = stack(Client::new()).oneshot(request).await.err();
    let error = error.ok_or("nobody should be there")?;
    assert!(error.is::<reqwest::Error>(), "{error:?}");
    assert_eq!(ledger.report().sends(), 3);
    Ok(())
}
