//! Any body, any split, any point of drop: the next copy yields what the first would have.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on must fail"
)]

use std::{
    collections::VecDeque,
    pin::{Pin, pin},
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use proptest::prelude::*;

use super::{Mode, ReplayBody};
use crate::{BoxError, NotReplayable, ReplayableBody};

/// What a body does when it is polled.
#[derive(Clone, Debug)]
enum Step {
    Chunk(Bytes),
    Pending,
    Trailers(u8),
    Fail,
}

/// A body that plays steps, each once. Not `Clone`.
#[derive(Debug)]
struct Played {
    steps: VecDeque<Step>,
    /// Whether `is_end_stream` and the size hint tell the truth or nothing.
    knows: bool,
    /// Set when it is dropped.
    dropped: Arc<Mutex<bool>>,
}

impl Played {
    fn new(steps: impl IntoIterator<Item = Step>, knows: bool) -> Self {
        Self {
            steps: steps.into_iter().collect(),
            knows,
            dropped: Arc::default(),
        }
    }

    fn len(&self) -> usize {
        let len = |step: &Step| match step {
            Step::Chunk(chunk) => chunk.len(),
            _ => 0,
        };
        self.steps.iter().map(len).sum()
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        *self.dropped.lock().unwrap() = true;
    }
}

impl Body for Played {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(match self.steps.pop_front() {
            Some(Step::Chunk(chunk)) => Some(Ok(Frame::data(chunk))),
            Some(Step::Pending) => return Poll::Pending,
            Some(Step::Trailers(n)) => Some(Ok(Frame::trailers(trailers(n)))),
            Some(Step::Fail) => Some(Err("the caller's body broke".into())),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.knows && self.steps.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        match self.knows {
            true => SizeHint::with_exact(self.len() as u64),
            false => SizeHint::new(),
        }
    }
}

fn trailers(n: u8) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    for i in 0..u16::from(n) {
        trailers.append("x-sum", HeaderValue::from(i));
    }
    trailers
}

/// What a body yields.
#[derive(Clone, Debug, Default, PartialEq)]
struct Yielded {
    data: Vec<u8>,
    trailers: Option<HeaderMap>,
    error: Option<String>,
}

/// Polls once; `None` once it has ended.
fn poll(body: &mut ReplayBody<Played>, into: &mut Yielded) -> Option<()> {
    let mut cx = Context::from_waker(Waker::noop());
    let hint = body.size_hint();
    assert!(hint.upper().is_none_or(|upper| hint.lower() <= upper));
    let ended = body.is_end_stream();
    match pin!(body).poll_frame(&mut cx) {
        Poll::Pending => assert!(!ended, "it said that it had ended"),
        Poll::Ready(None) => return None,
        Poll::Ready(Some(Err(error))) => into.error = Some(error.to_string()),
        Poll::Ready(Some(Ok(frame))) => {
            assert!(!ended, "it said that it had ended");
            match frame.into_data() {
                Ok(data) => {
                    let len = data.remaining() as u64;
                    assert!(hint.upper().is_none_or(|upper| len <= upper));
                    into.data.extend_from_slice(&data);
                }
                Err(frame) => into.trailers = frame.into_trailers().ok(),
            }
        }
    }
    Some(())
}

fn read(mut body: ReplayBody<Played>) -> Yielded {
    let mut yielded = Yielded::default();
    while poll(&mut body, &mut yielded).is_some() {}
    assert!(body.is_end_stream());
    yielded
}

fn expected(steps: &[Step]) -> Yielded {
    let mut all = Yielded::default();
    for step in steps {
        match step {
            Step::Chunk(chunk) => all.data.extend_from_slice(chunk),
            Step::Pending => (),
            Step::Trailers(n) => all.trailers = Some(trailers(*n)),
            Step::Fail => all.error = Some("the caller's body broke".into()),
        }
    }
    all
}

fn bodies() -> impl Strategy<Value = Vec<Step>> {
    let chunk = proptest::collection::vec(any::<u8>(), 0..200).prop_map(|b| Step::Chunk(b.into()));
    let step = prop_oneof![4 => chunk, 1 => Just(Step::Pending)];
    let end = prop_oneof![
        3 => Just(None),
        2 => (0..5_u8).prop_map(|n| Some(Step::Trailers(n))),
        1 => Just(Some(Step::Fail)),
    ];
    (proptest::collection::vec(step, 0..12), end).prop_map(|(mut steps, end)| {
        steps.extend(end);
        steps
    })
}

proptest! {
    #[test]
    fn the_next_copy_yields_what_the_first_would_have(
        steps in bodies(),
        knows in any::<bool>(),
        limit in prop_oneof![0..64_usize, 0..3000_usize, Just(usize::MAX)],
        drops in proptest::collection::vec(0..16_usize, 0..4),
    ) {
        let all = expected(&steps);
        let first = ReplayBody::new(Played::new(steps.clone(), knows), limit);
        let hint = (first.size_hint().lower(), first.size_hint().upper());
        let mut copy = first;
        for polls in drops {
            prop_assert_eq!((copy.size_hint().lower(), copy.size_hint().upper()), hint);
            let spare = copy.try_replay().unwrap();
            let mut yielded = Yielded::default();
            for _ in 0..polls {
                if poll(&mut copy, &mut yielded).is_none() {
                    break;
                }
                // What it says of itself holds, and so does the limit.
                if let Mode::Recording(tape) = &copy.mode {
                    let (bytes, chunks) = tape.kept();
                    prop_assert!(bytes <= limit);
                    // Those of each copy are joined, so that their number is bounded too.
                    prop_assert!(chunks <= bytes / 32 + 6);
                }
            }
            prop_assert!(all.data.starts_with(&yielded.data));
            if let Err(why) = spare.still_replayable(false) {
                if why.why().contains("still being sent") {
                    drop(copy);
                    prop_assert!(spare.still_replayable(false).is_ok());
                } else {
                    // Lost on the way: the send under way goes on to the end.
                    prop_assert_eq!(&read_on(copy, yielded), &all);
                    let refused = read(spare);
                    prop_assert_eq!(refused.error, Some(why.to_string()));
                    return Ok(());
                }
            } else {
                drop(copy);
            }
            copy = spare;
        }
        prop_assert_eq!(read(copy), all);
    }
}

fn read_on(mut body: ReplayBody<Played>, mut yielded: Yielded) -> Yielded {
    while poll(&mut body, &mut yielded).is_some() {}
    yielded
}

fn chunk(text: &'static str) -> Step {
    Step::Chunk(Bytes::from_static(text.as_bytes()))
}

fn why(of: Result<(), NotReplayable>) -> &'static str {
    of.unwrap_err().why()
}

#[test]
fn a_chunk_is_neither_copied_for_the_first_send_nor_for_the_next() {
    let sent = Bytes::from(vec![7; 4096]);
    let body = Played::new([Step::Chunk(sent.clone())], true);
    let mut first = ReplayBody::new(body, 8192);
    let mut second = first.try_replay().unwrap();
    for copy in [&mut first, &mut second] {
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(Some(Ok(frame))) = pin!(copy).poll_frame(&mut cx) else {
            panic!("no frame");
        };
        assert_eq!(frame.into_data().unwrap().as_ptr(), sent.as_ptr());
    }
}

#[test]
fn of_two_copies_at_once_the_second_yields_a_typed_error() {
    let mut first = ReplayBody::new(Played::new([chunk("a"), chunk("b")], false), 100);
    let mut second = first.try_replay().unwrap();
    let third = first.try_replay().unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    poll(&mut first, &mut Yielded::default());
    let Poll::Ready(Some(Err(error))) = pin!(&mut second).poll_frame(&mut cx) else {
        panic!("no error");
    };
    assert!(error.is::<NotReplayable>(), "{error:?}");
    assert!(second.is_end_stream());
    assert!(pin!(&mut second).poll_frame(&mut cx).is_ready());
    // The first is not disturbed, and the third has it all.
    assert_eq!(read_on(first, Yielded::default()).data, b"b");
    assert_eq!(read(third).data, b"ab");
}

#[test]
fn a_body_read_to_its_end_is_read_by_many_at_once_and_let_go_of() {
    let body = Played::new([chunk("a"), chunk("b"), Step::Trailers(2)], false);
    let dropped = body.dropped.clone();
    let first = ReplayBody::new(body, 100);
    let mut copies = [first.try_replay().unwrap(), first.try_replay().unwrap()];
    let all = read(first);
    assert!(*dropped.lock().unwrap());
    let mut yielded = [Yielded::default(), Yielded::default()];
    while let Some(()) = poll(&mut copies[0], &mut yielded[0]) {
        poll(&mut copies[1], &mut yielded[1]);
    }
    assert_eq!(yielded, [all.clone(), all]);
}

#[test]
fn whether_a_half_sent_body_goes_on_depends_on_how_the_send_ended() {
    let steps = [chunk("a"), chunk("b")];
    let mut first = ReplayBody::new(Played::new(steps.clone(), false), 100);
    let spare = first.try_replay().unwrap();
    assert_eq!(spare.still_replayable(true), Ok(()), "not begun");
    poll(&mut first, &mut Yielded::default());
    for answered in [true, false] {
        let still = why(spare.still_replayable(answered));
        assert_eq!(still, "the body is still being sent");
    }
    drop(first);
    let half = why(spare.still_replayable(true));
    assert_eq!(half, "the body was only half sent");
    assert_eq!(
        spare.still_replayable(false),
        Ok(()),
        "it broke, and goes on"
    );
    assert_eq!(read(spare).data, b"ab");

    // Read as far as was announced: the client stops there.
    let announced = Played::new(steps, false);
    let mut first = ReplayBody::announced(announced, 100, Some(2));
    let spare = first.try_replay().unwrap();
    poll(&mut first, &mut Yielded::default());
    poll(&mut first, &mut Yielded::default());
    drop(first);
    assert_eq!(spare.still_replayable(true), Ok(()));
}

#[test]
fn what_is_too_long_from_the_start_is_never_kept_and_can_be_sent_until_it_is_touched() {
    let steps = [chunk("abc"), Step::Pending, chunk("d")];
    for mut body in [
        ReplayBody::new(Played::new(steps.clone(), true), 3),
        ReplayBody::announced(Played::new(steps.clone(), false), 3, Some(4)),
    ] {
        let spare = body.try_replay().unwrap();
        let third = body.try_replay().unwrap();
        assert_eq!(spare.still_replayable(true), Ok(()));
        let mut yielded = Yielded::default();
        poll(&mut body, &mut yielded);
        let long = "the body is longer than the replay limit";
        assert_eq!(why(spare.still_replayable(false)), long);
        assert!(matches!(body.mode, Mode::Unrecorded(_)));
        assert_eq!(read_on(body, yielded).data, b"abcd");
        assert_eq!(
            read(third).error.as_deref(),
            Some(&*spare.still_replayable(true).unwrap_err().to_string())
        );
    }
    let untouched = ReplayBody::new(Played::new(steps, true), 2);
    let spare = untouched.try_replay().unwrap();
    drop(untouched);
    assert_eq!(spare.still_replayable(true), Ok(()));
    assert_eq!(read(spare).data, b"abcd");
}

#[test]
fn over_the_limit_the_record_is_dropped_and_the_send_goes_on() {
    let first = ReplayBody::new(Played::new([chunk("ab"), chunk("cd")], false), 3);
    let spare = first.try_replay().unwrap();
    assert_eq!(read(first).data, b"abcd");
    let lost = why(spare.still_replayable(true));
    assert_eq!(lost, "the body is longer than the replay limit");
    assert!(spare.try_replay().is_err());
}

#[test]
fn trailers_count_and_empty_bodies_are_empty() {
    let steps = [chunk("ab"), Step::Trailers(1)];
    let first = ReplayBody::new(Played::new(steps, false), 4);
    let spare = first.try_replay().unwrap();
    assert_eq!(read(first).trailers, Some(trailers(1)));
    assert!(spare.still_replayable(true).is_err());

    let empty = ReplayBody::new(Played::new([], true), 1);
    let copy = empty.try_replay().unwrap();
    assert!(empty.is_end_stream() && copy.is_end_stream());
    assert_eq!(read(empty), Yielded::default());
    assert_eq!(copy.size_hint().exact(), Some(0));
}
