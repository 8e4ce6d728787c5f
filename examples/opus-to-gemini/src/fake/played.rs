//! Answers that go wrong on the way.

use std::time::Duration;

use bytes::Bytes;

use super::{
    behaviour::Behaviour,
    log::Did,
    reply::Reply,
    script::{Step, TO_WRITE},
};

/// The steps of an answer's body, and what it will have done; `None` for one that comes whole.
pub(super) fn steps(behaviour: Behaviour, reply: &Reply) -> Option<(Vec<Step>, Did)> {
    let cut = [Step::Wait(TO_WRITE), Step::Break];
    Some(match behaviour {
        Behaviour::Cut => (with(half(reply), cut), Did::Cut),
        Behaviour::CutAfter { words } => (with(begun(reply, words), cut), Did::Cut),
        Behaviour::Stall => (with(half(reply), [Step::Hang]), Did::Stalled),
        Behaviour::StallAfter { words } => (with(begun(reply, words), [Step::Hang]), Did::Stalled),
        Behaviour::Silent => (silent(reply), Did::Stalled),
        Behaviour::Garble { words } => (garbled(reply, words), Did::Answered(reply.status)),
        Behaviour::RefuseInStream { .. } | Behaviour::NoDone if reply.events.is_empty() => {
            return None;
        }
        Behaviour::RefuseInStream { status } => {
            let event = format!("data: {}\n\n", Reply::refusal(status));
            let steps = with(events(reply, 1), [Step::Data(event.into())]);
            (steps, Did::Answered(reply.status))
        }
        Behaviour::NoDone => {
            let all = reply.events.len().saturating_sub(1);
            (with(events(reply, all), []), Did::Answered(reply.status))
        }
        _ => return None,
    })
}

fn with(data: Bytes, then: impl IntoIterator<Item = Step>) -> Vec<Step> {
    std::iter::once(Step::Data(data)).chain(then).collect()
}

fn half(reply: &Reply) -> Bytes {
    reply.body.slice(..reply.body.len() / 2)
}

/// The first events of a stream.
fn events(reply: &Reply, most: usize) -> Bytes {
    let events = reply.events.iter().take(most);
    events.flatten().copied().collect()
}

/// The role and so many words of a stream, or half of a plain answer.
fn begun(reply: &Reply, words: usize) -> Bytes {
    match reply.events.is_empty() {
        true => half(reply),
        false => events(reply, words.saturating_add(1)),
    }
}

/// The role, then signs of life for ever: each comes sooner than a limit of silence ends.
fn silent(reply: &Reply) -> Vec<Step> {
    const OFTEN: Duration = Duration::from_millis(50);
    /// As good as for ever.
    const PINGS: usize = 10_000;
    let ping = || {
        [
            Step::Wait(OFTEN),
            Step::Data(Bytes::from_static(b": ping\n\n")),
        ]
    };
    let pings = std::iter::repeat_with(ping).take(PINGS).flatten();
    match reply.events.is_empty() {
        true => vec![Step::Hang],
        false => with(events(reply, 1), pings.chain([Step::Hang])),
    }
}

/// One event of a stream, or a plain answer, that is no JSON.
fn garbled(reply: &Reply, words: usize) -> Vec<Step> {
    if reply.events.is_empty() {
        return with(half(reply), []);
    }
    let given = words.saturating_add(1);
    let rest = reply.events.iter().skip(given).flatten();
    let broken = Step::Data(Bytes::from_static(b"data: {\"choices\":[{\"del\n\n"));
    with(
        events(reply, given),
        [broken, Step::Data(rest.copied().collect())],
    )
}
