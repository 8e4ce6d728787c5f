use std::sync::{Arc, Mutex};

use axum::{Router, http::StatusCode};

use super::*;

/// A server that gives these answers in turn, and then echoes.
async fn serve(first: &'static [(u16, &'static str)]) -> Uri {
    let turns = Arc::new(Mutex::new(first.iter()));
    let app = Router::new().fallback(move |body: String| {
        let turn = turns.lock().ok().and_then(|mut turns| turns.next());
        async move {
            match turn {
                Some((status, wait)) => Err((
                    StatusCode::from_u16(*status).unwrap_or_default(),
                    [("retry-after-ms", *wait)],
                )),
                None => Ok(format!("echo: {body}")),
            }
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let uri = format!("http://{}/", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, app).await });
    uri.parse().expect("a uri")
}

#[tokio::test]
async fn it_waits_for_a_short_hint_and_goes_on_after_a_long_one() -> Result<(), BoxError> {
    let primary = serve(&[(429, "5"), (429, "3600000")]).await;
    let fallback = serve(&[]).await;
    let client = stack([("primary", primary), ("fallback", fallback)])?;
    let (answer, report) = ask(client, "hi".into()).await?;
    assert_eq!(answer, "echo: hi");
    assert_eq!(report.target.as_ref().map(|t| t.as_str()), Some("fallback"));
    let statuses: Vec<_> = report.attempts.iter().filter_map(|a| a.status).collect();
    assert_eq!(statuses, [429, 429, 200]);
    let causes: Vec<_> = report.attempts.iter().map(|a| a.cause).collect();
    assert_eq!(causes, [None, Some(Cause::HintTooLong), None]);
    Ok(())
}

#[tokio::test]
async fn a_primary_that_is_not_there_is_no_failure_of_the_call() -> Result<(), BoxError> {
    let nobody = Uri::from_static("http://127.0.0.1:1/");
    let client = stack([("primary", nobody), ("fallback", serve(&[]).await)])?;
    let (answer, report) = ask(client, "hi".into()).await?;
    assert_eq!(answer, "echo: hi");
    assert_eq!(
        report.fallback_reason.map(|f| f.class),
        Some(Class::Transient)
    );
    Ok(())
}
