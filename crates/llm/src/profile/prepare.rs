//! Rewriting bytes and whole requests.

use std::{
    error::Error,
    fmt, mem,
    pin::pin,
    task::{Context, Poll, Waker},
};

use bytes::{Buf, Bytes};
use http::{HeaderName, HeaderValue, Request, header};
use http_body::Body;
use tower_spillway_core::BoxError;

use super::{Fields, TargetProfile};

/// What no longer holds of a body that was rewritten.
const OF_THE_OLD_BODY: [HeaderName; 6] = [
    header::TRANSFER_ENCODING,
    header::TRAILER,
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
];

/// The request's body is not in memory, so that it cannot be rewritten.
///
/// Read it first, or put a layer outside that collects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotInMemory(());

impl fmt::Display for NotInMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request body is still to come: only one in memory can be rewritten")
    }
}

impl Error for NotInMemory {}

impl TargetProfile {
    /// Rewrites the bytes of a chat request. What is no JSON object, or cannot be read, comes back
    /// as it is: that is the vendor's to refuse.
    pub fn rewrite_bytes(&self, chat: &Bytes) -> Bytes {
        let rewritten = Fields::read(chat).and_then(|mut fields| {
            self.rewrite(&mut fields)?;
            Ok(fields.to_bytes())
        });
        rewritten.unwrap_or_else(|_| chat.clone())
    }

    /// Rewrites a request: its body, its `content-length`, and without the header fields that
    /// described the old body. For `Target::prepare`.
    ///
    /// The body must be in memory, as [`http_body_util::Full`](https://docs.rs/http-body-util) is.
    /// A compressed one (`content-encoding`) is left alone, and so is an empty one.
    ///
    /// # Errors
    ///
    /// [`NotInMemory`], or the body's own error; the request has then lost its body.
    pub fn prepare<B>(&self, request: &mut Request<B>) -> Result<(), BoxError>
    where
        B: Body + From<Bytes>,
        B::Error: Into<BoxError>,
    {
        if crate::media::is_encoded(request.headers()) {
            return Ok(());
        }
        let body = mem::replace(request.body_mut(), B::from(Bytes::new()));
        let old = in_memory(body)?;
        if old.is_empty() {
            return Ok(());
        }
        let new = self.rewrite_bytes(&old);
        let headers = request.headers_mut();
        for name in &OF_THE_OLD_BODY {
            headers.remove(name);
        }
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(new.len()));
        *request.body_mut() = B::from(new);
        Ok(())
    }
}

/// All bytes of a body that has them.
fn in_memory<B>(body: B) -> Result<Bytes, BoxError>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    let mut body = pin!(body);
    let mut cx = Context::from_waker(Waker::noop());
    let mut first = Bytes::new();
    let mut more: Option<Vec<u8>> = None;
    loop {
        match body.as_mut().poll_frame(&mut cx) {
            Poll::Pending => return Err(NotInMemory(()).into()),
            Poll::Ready(None) => break,
            Poll::Ready(Some(Err(error))) => return Err(error.into()),
            Poll::Ready(Some(Ok(frame))) => {
                let Ok(mut data) = frame.into_data() else {
                    continue;
                };
                let data = data.copy_to_bytes(data.remaining());
                match &mut more {
                    None if first.is_empty() => first = data,
                    None => more = Some([&*first, &*data].concat()),
                    Some(more) => more.extend_from_slice(&data),
                }
            }
        }
    }
    Ok(more.map_or(first, Bytes::from))
}
