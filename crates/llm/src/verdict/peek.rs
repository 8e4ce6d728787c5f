//! Reading a body so far, and giving all of it back.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use tower_spillway_core::BoxError;

use super::{
    body::{PeekedBody, Rest},
    scan::{Found, Scan},
};

/// At most so many bytes are read.
const MOST_READ: usize = 64 * 1024;

/// A body without data in its frames would be read for ever.
const MOST_FRAMES: usize = 16 * 1024;

/// A body that is being read.
pub(super) struct Peek<B> {
    body: Pin<Box<B>>,
    frames: VecDeque<Frame<Bytes>>,
    text: Vec<u8>,
    size: SizeHint,
    /// Ends the reading at the first choice of a success.
    scan: Option<Scan>,
    end: Option<End>,
}

enum End {
    /// Read to its end.
    Whole,
    Failed(BoxError),
    /// Enough was seen; there is more.
    Enough,
}

impl<B: Body> Peek<B>
where
    B::Error: Into<BoxError>,
{
    /// `success` looks for a choice and stops there.
    pub(super) fn new(body: B, success: bool) -> Self {
        Self {
            size: body.size_hint(),
            body: Box::pin(body),
            frames: VecDeque::new(),
            text: Vec::new(),
            scan: success.then(Scan::default),
            end: None,
        }
    }

    /// Ready when nothing more is read.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.end.is_none() {
            if self.body.is_end_stream() {
                self.end = Some(End::Whole);
                break;
            }
            match ready!(self.body.as_mut().poll_frame(cx)) {
                None => self.end = Some(End::Whole),
                Some(Err(error)) => self.end = Some(End::Failed(error.into())),
                Some(Ok(frame)) => self.take(whole_bytes(frame)),
            }
        }
        Poll::Ready(())
    }

    fn take(&mut self, frame: Frame<Bytes>) {
        if let Some(data) = frame.data_ref() {
            let room = MOST_READ - self.text.len().min(MOST_READ);
            let read = data.get(..room).unwrap_or(data);
            if let Some(scan) = &mut self.scan {
                if scan.read(read) == Found::Answer {
                    self.end = Some(End::Enough);
                }
            }
            self.text.extend_from_slice(read);
            if self.text.len() >= MOST_READ {
                self.end = Some(End::Enough);
            }
        }
        self.frames.push_back(frame);
        if self.frames.len() >= MOST_FRAMES {
            self.end = Some(End::Enough);
        }
    }

    /// What was read, as text.
    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether an answer was seen, so that there is nothing to judge.
    pub(super) fn is_answer(&self) -> bool {
        self.scan.as_ref().is_some_and(Scan::is_answer)
    }

    /// The error that ended it.
    pub(super) fn error(&self) -> Option<&BoxError> {
        match &self.end {
            Some(End::Failed(error)) => Some(error),
            _ => None,
        }
    }

    /// The body from its beginning.
    pub(super) fn into_body(self) -> PeekedBody<B> {
        let size = match self.end {
            Some(End::Whole) => known(&self.size, self.text.len()),
            _ => self.size,
        };
        let rest = match self.end {
            Some(End::Whole) => Rest::Over,
            Some(End::Failed(error)) => Rest::Failed { error: Some(error) },
            Some(End::Enough) | None => Rest::Begun { body: self.body },
        };
        PeekedBody::begun(self.frames, rest, size)
    }
}

/// For `Bytes` this only counts a reference.
pub(super) fn whole_bytes<D: Buf>(frame: Frame<D>) -> Frame<Bytes> {
    frame.map_data(|mut data| data.copy_to_bytes(data.remaining()))
}

/// The bound of a body whose length became known. Its lower bound stays: an exact size would make
/// a server send a length in the place of chunks, and lose the trailers.
fn known(size: &SizeHint, length: usize) -> SizeHint {
    let mut narrowed = *size;
    let length = length as u64;
    if narrowed.upper().is_none() && length > narrowed.lower() {
        narrowed.set_upper(length);
    }
    narrowed
}
