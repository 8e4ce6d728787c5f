//! What was read of a body, and what is still to come.

use std::{mem, pin::Pin, sync::Arc};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

/// Shorter chunks are put together: kept one by one they would take more room than their bytes,
/// and each could pin the large buffer that it is a slice of.
const SMALL: usize = 64;

/// The record of a body under way, with the rest of it. It is with one copy of the body at a
/// time, and moves to the next when that one is dropped.
pub(super) struct Tape<B> {
    pub(super) rest: Pin<Box<B>>,
    chunks: Vec<Bytes>,
    /// The latest small chunks.
    tail: BytesMut,
    /// Data bytes read, all of them in the record.
    read: usize,
}

/// A body that was read to its end.
pub(super) struct Whole {
    chunks: Vec<Bytes>,
    trailers: Option<HeaderMap>,
}

impl<B> Tape<B> {
    pub(super) fn new(rest: B) -> Self {
        Self {
            rest: Box::pin(rest),
            chunks: Vec::new(),
            tail: BytesMut::new(),
            read: 0,
        }
    }

    pub(super) fn read(&self) -> usize {
        self.read
    }

    /// The recorded chunk at that place.
    pub(super) fn chunk(&self, at: usize) -> Option<&Bytes> {
        self.chunks.get(at)
    }

    /// Records a chunk, if there is room below `limit`.
    #[must_use]
    pub(super) fn record(&mut self, chunk: &Bytes, limit: usize) -> bool {
        let read = self.read.saturating_add(chunk.len());
        if read > limit {
            return false;
        }
        self.read = read;
        if chunk.len() < SMALL {
            self.tail.extend_from_slice(chunk);
        } else {
            self.close();
            self.chunks.push(chunk.clone());
        }
        true
    }

    /// Puts the small chunks in line, for the next copy to read.
    pub(super) fn close(&mut self) {
        if !self.tail.is_empty() {
            self.chunks.push(mem::take(&mut self.tail).freeze());
        }
    }

    /// The bytes and the chunks in the record.
    #[cfg(test)]
    pub(super) fn kept(&self) -> (usize, usize) {
        let bytes = self.chunks.iter().map(Bytes::len).sum::<usize>();
        let tail = usize::from(!self.tail.is_empty());
        (bytes + self.tail.len(), self.chunks.len() + tail)
    }

    /// The body ended; its rest is dropped here.
    pub(super) fn finish(mut self, trailers: Option<HeaderMap>) -> Arc<Whole> {
        self.close();
        Arc::new(Whole {
            chunks: self.chunks,
            trailers,
        })
    }
}

impl Whole {
    /// A body without a frame.
    pub(super) fn empty() -> Arc<Self> {
        Arc::new(Self {
            chunks: Vec::new(),
            trailers: None,
        })
    }

    pub(super) fn chunk(&self, at: usize) -> Option<&Bytes> {
        self.chunks.get(at)
    }

    /// The place after the last chunk.
    pub(super) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    pub(super) fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_ref()
    }
}

/// What trailers take of the limit.
pub(super) fn len(trailers: &HeaderMap) -> usize {
    trailers.iter().fold(0, |len, (name, value)| {
        len.saturating_add(name.as_str().len())
            .saturating_add(value.len())
    })
}
