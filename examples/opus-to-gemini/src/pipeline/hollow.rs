//! Successes without an answer in them.

use bytes::Bytes;
use http::Response;
use http_body_util::{Either, Full};
use serde::{Deserialize, de::IgnoredAny};
use tower_spillway_core::{Class, Reading};

use super::prepare::whole;

#[derive(Deserialize)]
struct Answer {
    choices: Vec<IgnoredAny>,
}

/// Whether a body is an answer to a chat request: an object with something in its `choices`.
pub(crate) fn is_answer(body: &[u8]) -> bool {
    serde_json::from_slice(body).is_ok_and(|answer: Answer| !answer.choices.is_empty())
}

/// Says that a success is for another attempt to give, if no caller could read an answer in it: a
/// login page of a network, an answer cut off where nothing tells its length, no body at all,
/// something compressed that nobody asked to be.
///
/// What a vendor's table says of it goes before this.
pub(super) fn mark<B>(
    mut response: Response<Either<Full<Bytes>, B>>,
) -> Response<Either<Full<Bytes>, B>> {
    let hollow = match response.body() {
        Either::Left(body) if response.status().is_success() => {
            !is_answer(&whole(&mut body.clone()))
        }
        _ => false,
    };
    if hollow {
        let reading = Reading::new(Class::Transient).with_reason("no_answer");
        response.extensions_mut().insert(reading);
    }
    response
}
