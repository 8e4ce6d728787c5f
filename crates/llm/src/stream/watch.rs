//! How far a stream has come, read event by event.

use super::{
    dialect::Dialect,
    error::Break,
    event::{Event, InBand},
    sse::{Cut, Parts, Splitter},
    usage::Counts,
};

/// Where the bytes read so far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Behind a whole event: all of it may be given on.
    Between,
    /// Inside an event.
    Inside,
}

/// What is wrong with a stream.
#[derive(Debug, PartialEq)]
pub(super) enum Fault {
    /// The vendor says so itself.
    InBand(InBand),
    Broke(Break),
}

/// See the [module docs](self).
#[derive(Debug)]
pub(super) struct Watch {
    splitter: Splitter,
    longest: usize,
    content: bool,
    answers: u128,
    finished: u128,
    done: bool,
    dialect: Option<Dialect>,
    number: Option<u64>,
    usage: Option<Counts>,
}

impl Watch {
    /// Reads events of up to `longest` bytes.
    pub(super) fn new(longest: usize) -> Self {
        Self {
            splitter: Splitter::new(longest),
            longest,
            content: false,
            answers: 0,
            finished: 0,
            done: false,
            dialect: None,
            number: None,
            usage: None,
        }
    }

    /// Reads on, at most to the end of one event: how many bytes that took.
    pub(super) fn read(&mut self, bytes: &[u8]) -> (usize, Result<Place, Fault>) {
        if self.done {
            // Whatever follows the end is nobody's business.
            return (bytes.len(), Ok(Place::Between));
        }
        let (taken, cut) = self.splitter.read(bytes);
        let said = match cut {
            None => {
                let place = match self.splitter.is_too_long() {
                    true => Place::Between,
                    false => Place::Inside,
                };
                return (taken, Ok(place));
            }
            // So long that it can only be content, an image for instance.
            Some(Cut::TooLong { data: true }) => {
                self.content = true;
                self.answers |= 1;
                return (taken, Ok(Place::Between));
            }
            Some(Cut::TooLong { data: false }) => {
                let said = match self.has_begun() {
                    true => Ok(Place::Between),
                    false => Err(Fault::Broke(Break::Preamble(self.longest))),
                };
                return (taken, said);
            }
            Some(Cut::Event(parts)) => said(&parts),
        };
        (taken, said.and_then(|event| self.take(event)))
    }

    fn take(&mut self, event: Event) -> Result<Place, Fault> {
        self.dialect = self.dialect.or(event.dialect);
        self.number = event.number.or(self.number);
        if let Some(counts) = event.usage {
            self.usage = Some(self.usage.unwrap_or_default().then(counts));
        }
        if let Some(error) = event.error {
            return Err(Fault::InBand(error));
        }
        self.content |= event.content;
        self.answers |= event.answers;
        self.finished |= event.finished;
        self.done = event.done;
        if self.done && !self.has_begun() {
            return Err(Fault::Broke(Break::EndedEarly));
        }
        Ok(Place::Between)
    }

    /// The body ended: whether that was its end.
    pub(super) fn end(&mut self) -> Result<(), Fault> {
        if self.is_complete() {
            return Ok(());
        }
        // An event without its end was never sent. But if it says what went wrong, that is heard.
        let error = match said(&self.splitter.leftover()) {
            Err(Fault::InBand(error)) => Some(error),
            Ok(event) => event.error,
            Err(_) => None,
        };
        Err(match error {
            Some(error) => Fault::InBand(InBand {
                visible_in: &[],
                ..error
            }),
            None => Fault::Broke(Break::EndedEarly),
        })
    }

    /// Whether content was seen.
    pub(super) fn has_content(&self) -> bool {
        self.content
    }

    /// Whether there is something to give out: content, or an answer that is over without any.
    pub(super) fn has_begun(&self) -> bool {
        self.content || self.finished != 0
    }

    /// Whether nothing more is needed: every answer has its finish reason, or the last event came.
    pub(super) fn is_complete(&self) -> bool {
        self.done || (self.finished != 0 && self.answers & !self.finished == 0)
    }

    /// Whether the last event came.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Whether bytes of an event without end were given on.
    pub(super) fn is_inside_given(&self) -> bool {
        self.splitter.is_too_long()
    }

    pub(super) fn dialect(&self) -> Option<Dialect> {
        self.dialect
    }

    /// The number of the last event, where they are numbered.
    pub(super) fn number(&self) -> Option<u64> {
        self.number
    }

    /// What was counted so far.
    pub(super) fn usage(&self) -> Option<Counts> {
        self.usage
    }
}

fn said(parts: &Parts<'_>) -> Result<Event, Fault> {
    if let Some(error) = InBand::stray(parts.stray) {
        return Err(Fault::InBand(error));
    }
    match parts.data {
        Some(data) => Event::read(parts.name, data).map_err(|_| Fault::Broke(Break::Unreadable)),
        None => Ok(Event::default()),
    }
}
