use std::{
    fmt, mem,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use super::tape::{self, Tape, Whole};
use crate::{BoxError, NotReplayable, ReplayableBody};

const TOO_LONG: NotReplayable = NotReplayable::new("the body is longer than the replay limit");
const HALF_SENT: NotReplayable = NotReplayable::new("the body was only half sent");
const BEING_SENT: NotReplayable = NotReplayable::new("the body is still being sent");
const UNKNOWN: NotReplayable = NotReplayable::new("the body has frames of an unknown kind");
const FAILED: NotReplayable = NotReplayable::new("reading the body failed");

/// A request body that is recorded while it is first sent. See the [module docs](super).
///
/// It is not `Clone`: [`try_replay`](ReplayableBody::try_replay) gives a further copy. Of a body
/// that was not yet read to its end one copy at a time can be read; another then yields one
/// [`NotReplayable`] error and ends. When the copy under way is dropped, the next one yields what it
/// did and goes on. Once the body was read to its end any number of copies can be read at once.
///
/// No lock is taken for a frame, only where the record changes hands.
pub struct ReplayBody<B> {
    shared: Arc<Shared<B>>,
    mode: Mode<B>,
    /// The place in the record of the next frame.
    at: usize,
    /// Data bytes that this copy yielded.
    yielded: u64,
}

/// What the copies of one body share.
struct Shared<B> {
    /// The most that is recorded.
    limit: usize,
    /// Of the body as it came.
    hint: SizeHint,
    /// How long it will be, if that is known.
    announced: Option<u64>,
    was_empty: bool,
    record: Mutex<Record<B>>,
}

/// Where the record is.
enum Record<B> {
    /// Here, for the next copy that is read.
    Free(Tape<B>),
    /// With the copy that is being read.
    Held,
    Whole(Arc<Whole>),
    Gone(NotReplayable),
}

/// What one copy is doing.
enum Mode<B> {
    /// Not read yet.
    Fresh,
    /// Reading the record, then recording the rest.
    Recording(Tape<B>),
    Replaying(Arc<Whole>),
    /// Sending what nobody records.
    Unrecorded(Pin<Box<B>>),
    Done,
}

impl<B> ReplayBody<B>
where
    B: Body,
{
    /// Records up to `limit` bytes of a body.
    pub fn new(body: B, limit: usize) -> Self {
        Self::announced(body, limit, None)
    }

    pub(super) fn announced(body: B, limit: usize, length: Option<u64>) -> Self {
        let hint = body.size_hint();
        let announced = hint.exact().or(length);
        let least = announced.unwrap_or(hint.lower());
        let too_long = usize::try_from(least).map_or(true, |least| least > limit);
        let was_empty = body.is_end_stream();
        let record = if was_empty {
            Record::Whole(Whole::empty())
        } else {
            Record::Free(Tape::new(body))
        };
        Self {
            shared: Arc::new(Shared {
                // What will not fit is not begun. Until it is touched it can still go elsewhere: to
                // the next target after a refusal.
                limit: if too_long { 0 } else { limit },
                hint,
                announced,
                was_empty,
                record: Mutex::new(record),
            }),
            mode: Mode::Fresh,
            at: 0,
            yielded: 0,
        }
    }
}

impl<B> Shared<B> {
    fn lock(&self) -> MutexGuard<'_, Record<B>> {
        // Only moves happen under the lock.
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a copy does that is read for the first time.
    fn begin(&self) -> Result<Mode<B>, NotReplayable> {
        let mut record = self.lock();
        match mem::replace(&mut *record, Record::Held) {
            Record::Free(tape) => Ok(Mode::Recording(tape)),
            Record::Held => Err(BEING_SENT),
            Record::Whole(whole) => {
                *record = Record::Whole(Arc::clone(&whole));
                Ok(Mode::Replaying(whole))
            }
            Record::Gone(why) => {
                *record = Record::Gone(why);
                Err(why)
            }
        }
    }

    fn set(&self, record: Record<B>) {
        let before = mem::replace(&mut *self.lock(), record);
        // After the lock: the caller's body may be in it.
        drop(before);
    }
}

impl<B> ReplayableBody for ReplayBody<B> {
    fn try_replay(&self) -> Result<Self, NotReplayable> {
        if let Record::Gone(why) = *self.shared.lock() {
            return Err(why);
        }
        Ok(Self {
            shared: Arc::clone(&self.shared),
            mode: Mode::Fresh,
            at: 0,
            yielded: 0,
        })
    }

    fn still_replayable(&self, answered: bool) -> Result<(), NotReplayable> {
        match &*self.shared.lock() {
            Record::Whole(_) => Ok(()),
            Record::Gone(why) => Err(*why),
            Record::Held => Err(BEING_SENT),
            Record::Free(tape) => {
                let read = tape.read();
                let all = |announced| u64::try_from(read).is_ok_and(|read| read >= announced);
                if !answered || read == 0 || self.shared.announced.is_some_and(all) {
                    Ok(())
                } else {
                    Err(HALF_SENT)
                }
            }
        }
    }
}

type Polled = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

impl<B> ReplayBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    /// The next frame of the record, or of the body, which is then recorded.
    fn poll_recording(&mut self, cx: &mut Context<'_>) -> Polled {
        let Mode::Recording(tape) = &mut self.mode else {
            return Poll::Ready(None);
        };
        if let Some(chunk) = tape.chunk(self.at) {
            self.at = self.at.saturating_add(1);
            return Poll::Ready(Some(Ok(Frame::data(chunk.clone()))));
        }
        let frame = match ready!(tape.rest.as_mut().poll_frame(cx)) {
            Some(Ok(frame)) => frame.map_data(to_bytes),
            Some(Err(error)) => {
                self.give_up(FAILED);
                return Poll::Ready(Some(Err(error.into())));
            }
            None => {
                self.finish(None);
                return Poll::Ready(None);
            }
        };
        // Small chunks get their place later: none of them is this copy's to yield again.
        self.at = usize::MAX;
        if let Some(chunk) = frame.data_ref() {
            if !tape.record(chunk, self.shared.limit) {
                self.give_up(TOO_LONG);
            } else if tape.rest.is_end_stream() {
                self.finish(None);
            }
        } else if let Some(trailers) = frame.trailers_ref() {
            if tape.read().saturating_add(tape::len(trailers)) > self.shared.limit {
                self.give_up(TOO_LONG);
            } else {
                // Nothing follows trailers.
                self.finish(Some(trailers.clone()));
            }
        } else {
            self.give_up(UNKNOWN);
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn take_tape(&mut self) -> Option<Tape<B>> {
        match mem::replace(&mut self.mode, Mode::Done) {
            Mode::Recording(tape) => Some(tape),
            _ => None,
        }
    }

    /// The body was read to its end, and this copy has yielded all of it.
    fn finish(&mut self, trailers: Option<HeaderMap>) {
        if let Some(tape) = self.take_tape() {
            self.shared.set(Record::Whole(tape.finish(trailers)));
        }
    }

    /// Drops the record; the rest of the body is sent by this copy alone.
    fn give_up(&mut self, why: NotReplayable) {
        self.shared.set(Record::Gone(why));
        if let Some(tape) = self.take_tape() {
            self.mode = Mode::Unrecorded(tape.rest);
        }
    }

    fn poll_replaying(&mut self) -> Polled {
        let Mode::Replaying(whole) = &self.mode else {
            return Poll::Ready(None);
        };
        let frame = match (whole.chunk(self.at), whole.trailers()) {
            (Some(chunk), _) => Frame::data(chunk.clone()),
            (None, Some(trailers)) if self.at == whole.chunks() => {
                Frame::trailers(trailers.clone())
            }
            _ => {
                self.mode = Mode::Done;
                return Poll::Ready(None);
            }
        };
        self.at = self.at.saturating_add(1);
        Poll::Ready(Some(Ok(frame)))
    }

    fn poll_unrecorded(&mut self, cx: &mut Context<'_>) -> Polled {
        let Mode::Unrecorded(body) = &mut self.mode else {
            return Poll::Ready(None);
        };
        let frame = ready!(body.as_mut().poll_frame(cx));
        Poll::Ready(frame.map(|frame| match frame {
            Ok(frame) => Ok(frame.map_data(to_bytes)),
            Err(error) => Err(error.into()),
        }))
    }
}

impl<B> Body for ReplayBody<B>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = self.get_mut();
        if matches!(this.mode, Mode::Fresh) {
            match this.shared.begin() {
                Ok(mode) => this.mode = mode,
                Err(why) => {
                    this.mode = Mode::Done;
                    return Poll::Ready(Some(Err(why.into())));
                }
            }
        }
        let frame = ready!(match this.mode {
            Mode::Recording(_) => this.poll_recording(cx),
            Mode::Replaying(_) => this.poll_replaying(),
            Mode::Unrecorded(_) => this.poll_unrecorded(cx),
            Mode::Fresh | Mode::Done => Poll::Ready(None),
        });
        match &frame {
            Some(Ok(frame)) => {
                let len = frame.data_ref().map_or(0, Bytes::len);
                let len = u64::try_from(len).unwrap_or(u64::MAX);
                this.yielded = this.yielded.saturating_add(len);
            }
            // After its end or an error the body is not asked again.
            Some(Err(_)) | None => this.mode = Mode::Done,
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match &self.mode {
            Mode::Fresh => self.shared.was_empty,
            Mode::Recording(tape) => tape.chunk(self.at).is_none() && tape.rest.is_end_stream(),
            Mode::Replaying(whole) => {
                let last = usize::from(whole.trailers().is_some());
                self.at >= whole.chunks().saturating_add(last)
            }
            Mode::Unrecorded(body) => body.is_end_stream(),
            Mode::Done => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        if matches!(self.mode, Mode::Done) {
            return SizeHint::with_exact(0);
        }
        // Of the original even where the record would know better: a second send must not have a
        // `Content-Length` that the first had not.
        let hint = &self.shared.hint;
        let mut left = SizeHint::new();
        if let Some(upper) = hint.upper() {
            left.set_upper(upper.saturating_sub(self.yielded));
        }
        left.set_lower(hint.lower().saturating_sub(self.yielded));
        left
    }
}

/// Without copying where the data are `Bytes` already.
fn to_bytes<D: Buf>(mut data: D) -> Bytes {
    data.copy_to_bytes(data.remaining())
}

impl<B> Drop for ReplayBody<B> {
    fn drop(&mut self) {
        if let Mode::Recording(mut tape) = mem::replace(&mut self.mode, Mode::Done) {
            tape.close();
            self.shared.set(Record::Free(tape));
        }
    }
}

impl<B> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.mode {
            Mode::Fresh => "fresh",
            Mode::Recording(_) => "recording",
            Mode::Replaying(_) => "replaying",
            Mode::Unrecorded(_) => "unrecorded",
            Mode::Done => "done",
        };
        f.debug_struct("ReplayBody")
            .field("mode", &mode)
            .field("yielded", &self.yielded)
            .field("limit", &self.shared.limit)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
