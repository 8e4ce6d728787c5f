//! `POST /v1/chat/completions`

use std::{convert::Infallible, fmt::Display};

use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts};
use http_body_util::{BodyExt, Full};
use tower_spillway_core::{BodyEnd, Class, Http, Ledger, Read, clock};
use tower_spillway_llm::{StreamUsage, stream::is_event_stream};

use super::{
    Gateway,
    asked::Asked,
    call::{Answer, Call, Used},
    error::ApiError,
    failure::Failed,
    gateway::Current,
    headers,
    id::RequestId,
    limit, models,
    read_body::{self, Bounds},
};
use crate::pipeline::{AnswerBody, ChatRequest, ChatResponse, NoChain, Pipeline, PlainAnswer};

/// A longer error of a vendor's is cut off.
const LONGEST_ERROR: usize = 1024 * 1024;

pub(super) async fn chat(gateway: Gateway, request: Request) -> Result<Response, Infallible> {
    let (head, body) = request.into_parts();
    let id = head.extensions.get::<RequestId>().cloned();
    let id = id.unwrap_or_else(RequestId::random);
    let mut call = Call::new(gateway.clone(), id);
    let current = gateway.current();
    let served = match serve(&gateway, &current, &mut call, head, body).await {
        Ok(served) => served,
        Err(error) => {
            call.fails(error.status().as_u16(), error.code());
            let mut response = error.into_response();
            tell(&call, response.headers_mut());
            return Ok(response);
        }
    };
    let mut headers = served.headers;
    tell(&call, &mut headers);
    let mut response = match served.error {
        Some(code) => {
            // The request was wrong, and no SDK need find out twice.
            headers.insert(headers::SHOULD_RETRY, headers::yes_or_no(false));
            call.fails(served.status.as_u16(), code);
            Response::new(Body::new(served.answer.body))
        }
        None => {
            let body = call.answers(served.status.as_u16(), served.used, served.answer);
            Response::new(Body::new(body))
        }
    };
    *response.status_mut() = served.status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// What a vendor said, for the caller.
struct Served {
    status: StatusCode,
    headers: HeaderMap,
    answer: Answer,
    used: Used,
    /// It says that the request is wrong.
    error: Option<&'static str>,
}

async fn serve(
    gateway: &Gateway,
    current: &Current,
    call: &mut Call,
    head: Parts,
    body: Body,
) -> Result<Served, ApiError> {
    let table = current.table();
    let limit = limit::asked(&head.headers, table)?;
    let place = gateway.queue().admit()?;
    let bounds = Bounds {
        most: table.max_body,
        within: table.read_body_within,
    };
    let body = read_body::read(&head.headers, body, bounds).await?;
    let asked = Asked::read(body, table.allow_request_fallbacks)?;
    call.asks(&asked.model, asked.stream);
    let mut pipeline = route(current, &asked)?;
    let within = limit.map_or(table.queue_within, |limit| limit.min(table.queue_within));
    call.starts(place.turn(within).await?);
    if let Some(limit) = limit {
        // The time that the caller gives counts from its request on.
        pipeline = pipeline.within(limit.saturating_sub(call.elapsed()));
    }
    let request = request(call, head.headers, asked.body);
    match pipeline.send(request, asked.stream).await {
        Ok(response) => answer(&pipeline, call.ledger(), response).await,
        Err(error) => Err(Failed::new(&pipeline, call.ledger()).error(&error)),
    }
}

fn route(current: &Current, asked: &Asked) -> Result<Pipeline, ApiError> {
    if asked.fallbacks.is_empty() {
        let pipeline = current.fleet.route(&asked.model);
        return pipeline.ok_or_else(|| models::unserved(&current.fleet, &asked.model));
    }
    let mut models = vec![asked.model.clone()];
    models.extend(asked.fallbacks.iter().cloned());
    current.fleet.chain(&models).map_err(|error| match error {
        NoChain::UnknownModel { model } => models::unserved(&current.fleet, &model),
        NoChain::Empty => models::unknown(&asked.model),
    })
}

/// The pipeline picks the headers that vendors get.
fn request(call: &Call, mut headers: HeaderMap, body: Bytes) -> ChatRequest {
    headers.insert(headers::CALL_ID, call.id().value());
    let mut request = ChatRequest::new(Full::new(body));
    *request.headers_mut() = headers;
    request.extensions_mut().insert(call.ledger().clone());
    request
}

async fn answer(
    pipeline: &Pipeline,
    ledger: &Ledger,
    response: ChatResponse,
) -> Result<Served, ApiError> {
    let reading = Http::new().read(Ok(&response));
    let (head, body) = response.into_parts();
    let mut headers = headers::of_answer(&head.headers, |text| !pipeline.secrets().are_in(text));
    let failed = || Failed::new(pipeline, ledger);
    if !head.status.is_success() {
        let body = error_body(body).await;
        let body = failed().answer(head.status, &reading, body)?;
        return Ok(rejected(head.status, headers, body));
    }
    if is_event_stream(&head.headers) {
        // What buffers between here and the caller would make one piece of it.
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        let usage = head.extensions.get::<StreamUsage>().cloned();
        let end = head.extensions.get::<BodyEnd>().cloned();
        return Ok(Served {
            status: head.status,
            headers,
            answer: Answer {
                body,
                end,
                secrets: Some(pipeline.secrets().clone()),
            },
            used: usage.map(Used::Stream).unwrap_or_default(),
            error: None,
        });
    }
    // It is here already: the pipeline reads plain answers whole.
    let body = body.collect().await;
    let body = body.map_err(|error| failed().error(&error))?.to_bytes();
    let plain = head.extensions.get::<PlainAnswer>();
    if plain.is_some() {
        headers.insert(header::CONTENT_TYPE, headers::JSON);
        headers.remove(header::CONTENT_ENCODING);
    } else if reading.class() != Class::Success {
        // It says 200 and means something else.
        let body = failed().answer(StatusCode::BAD_REQUEST, &reading, body)?;
        return Ok(rejected(StatusCode::BAD_REQUEST, headers, body));
    }
    let usage = plain.and_then(|answer| answer.usage);
    Ok(Served {
        status: head.status,
        headers,
        answer: whole(body),
        used: Used::Plain(usage),
        error: None,
    })
}

/// The request is wrong, as a vendor says.
fn rejected(status: StatusCode, mut headers: HeaderMap, body: Bytes) -> Served {
    headers.insert(header::CONTENT_TYPE, headers::JSON);
    headers.remove(header::CONTENT_ENCODING);
    Served {
        status,
        headers,
        answer: whole(body),
        used: Used::Unknown,
        error: Some("rejected_by_vendor"),
    }
}

/// The body of an error, as much of it as can be read.
async fn error_body(mut body: AnswerBody) -> Bytes {
    let mut read = BytesMut::new();
    while let Some(Ok(frame)) = body.frame().await {
        let data = frame.into_data().unwrap_or_default();
        if read.len().saturating_add(data.len()) > LONGEST_ERROR {
            break;
        }
        read.extend_from_slice(&data);
    }
    read.freeze()
}

fn whole(body: Bytes) -> Answer {
    let body = Full::new(body).map_err(|never| match never {});
    Answer {
        body: body.boxed_unsync(),
        end: None,
        secrets: None,
    }
}

/// What the caller is told of its call.
fn tell(call: &Call, headers: &mut HeaderMap) {
    let report = call.ledger().report();
    let text = |name: &dyn Display| headers::value(name.to_string());
    if let Some(target) = report.target.as_ref().and_then(|target| text(target)) {
        headers.insert(headers::TARGET, target);
    }
    headers.insert(headers::ATTEMPTS, report.sends().into());
    let latency = clock::millis(call.elapsed());
    headers.insert(headers::LATENCY_MS, latency.into());
    if let Some(reason) = report
        .fallback_reason
        .as_ref()
        .and_then(|reason| text(reason))
    {
        headers.insert(headers::FALLBACK_REASON, reason);
    }
}
