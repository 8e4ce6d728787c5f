//! Cuts a `text/event-stream` into events while it arrives.
//!
//! As the HTML standard parses it (9.2.6), except that where an event ends in the bytes is told too,
//! so that whole events can be given on unchanged, and that what is no field at all is kept aside:
//! some vendors put bare JSON between events. Bytes stay bytes: a code point cut in two is whole
//! again when its line is.

/// What an event was made of. Borrowed from the [`Splitter`] until it reads on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parts<'s> {
    /// The last `event` field.
    pub(super) name: &'s [u8],
    /// The `data` fields, joined by line feeds; `None` without one.
    pub(super) data: Option<&'s [u8]>,
    /// Lines that are no field of an event.
    pub(super) stray: &'s [u8],
}

/// What came to its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Cut<'s> {
    /// An event, or nothing but comments and ignored fields.
    Event(Parts<'s>),
    /// The event is longer than what is kept of one. It is not read; its end is told as that of an
    /// event without anything in it.
    TooLong {
        /// Whether it has data so far, and is not a comment or noise without end.
        data: bool,
    },
}

/// Reads byte by byte; what it says does not depend on how the bytes were cut.
#[derive(Debug)]
pub(super) struct Splitter {
    longest: usize,
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    stray: Vec<u8>,
    has_data: bool,
    /// Bytes of the event so far, line ends included.
    length: usize,
    /// Bytes of the line so far; counted where they are no longer kept.
    line_length: usize,
    first_line: bool,
    after_cr: bool,
    too_long: bool,
    /// What is kept belongs to an event that was told.
    told: bool,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl Splitter {
    /// Keeps at most `longest` bytes of an event.
    pub(super) fn new(longest: usize) -> Self {
        Self {
            longest,
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            stray: Vec::new(),
            has_data: false,
            length: 0,
            line_length: 0,
            first_line: true,
            after_cr: false,
            too_long: false,
            told: false,
        }
    }

    /// Reads to the next end of an event: how many bytes that took, and what ended.
    pub(super) fn read(&mut self, bytes: &[u8]) -> (usize, Option<Cut<'_>>) {
        if std::mem::take(&mut self.told) {
            self.forget();
        }
        let mut taken = 0;
        while let Some(rest) = bytes.get(taken..).filter(|rest| !rest.is_empty()) {
            if std::mem::take(&mut self.after_cr) && rest.first() == Some(&b'\n') {
                taken += 1;
                continue;
            }
            let end = rest.iter().position(|b| matches!(b, b'\n' | b'\r'));
            let text = rest.get(..end.unwrap_or(rest.len())).unwrap_or(rest);
            if !self.too_long && self.length.saturating_add(text.len()) >= self.longest {
                // Up to the bound, byte by byte, so that it is crossed at the same byte whatever
                // the cuts were.
                let room = self.longest.saturating_sub(self.length);
                let text = text.get(..room).unwrap_or(text);
                self.push(text);
                taken += text.len();
                self.too_long = true;
                let line = self.line.strip_prefix(BOM).unwrap_or(&self.line);
                let data = self.has_data || line.starts_with(b"data:");
                self.forget_text();
                return (taken, Some(Cut::TooLong { data }));
            }
            self.push(text);
            taken += text.len();
            let Some(end) = end else { break };
            taken += 1;
            self.length = self.length.saturating_add(1);
            self.after_cr = rest.get(end) == Some(&b'\r');
            if self.end_line() {
                self.too_long = false;
                self.length = 0;
                self.told = true;
                return (taken, Some(Cut::Event(self.parts())));
            }
        }
        (taken, None)
    }

    /// Whether the bytes read last are of an event that is too long to be kept.
    pub(super) fn is_too_long(&self) -> bool {
        self.too_long
    }

    /// What was read of an event that never ended, its last line included.
    pub(super) fn leftover(&mut self) -> Parts<'_> {
        if std::mem::take(&mut self.told) {
            self.forget();
        }
        if self.line_length > 0 {
            self.end_line();
        }
        self.parts()
    }

    fn push(&mut self, text: &[u8]) {
        self.length = self.length.saturating_add(text.len());
        self.line_length = self.line_length.saturating_add(text.len());
        if !self.too_long {
            self.line.extend_from_slice(text);
        }
    }

    /// Takes up the field of a line; `true` if the line ends an event.
    fn end_line(&mut self) -> bool {
        let length = std::mem::take(&mut self.line_length);
        let first = std::mem::take(&mut self.first_line);
        if self.too_long {
            return length == 0;
        }
        let line = std::mem::take(&mut self.line);
        let text = match first {
            true => line.strip_prefix(BOM).unwrap_or(&line),
            false => &line,
        };
        let ends = text.is_empty();
        if !ends {
            self.field(text);
        }
        // Its room is used again.
        self.line = line;
        self.line.clear();
        ends
    }

    fn field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|b| *b == b':');
        let name = line.get(..colon.unwrap_or(line.len())).unwrap_or(line);
        let value = colon.and_then(|at| line.get(at.saturating_add(1)..));
        let value = value.unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // `retry` is how soon a browser connects again, and says nothing of a rate limit.
            b"" | b"id" | b"retry" => {}
            _ => {
                self.stray.extend_from_slice(line);
                self.stray.push(b'\n');
            }
        }
    }

    fn parts(&self) -> Parts<'_> {
        Parts {
            name: &self.name,
            data: self.has_data.then_some(&self.data),
            stray: &self.stray,
        }
    }

    fn forget(&mut self) {
        self.name.clear();
        self.data.clear();
        self.stray.clear();
        self.has_data = false;
    }

    /// Gives the room back too: it was of a size that is not expected again.
    fn forget_text(&mut self) {
        self.line = Vec::new();
        self.name = Vec::new();
        self.data = Vec::new();
        self.stray = Vec::new();
        self.has_data = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LONGEST: usize = 64;

    /// Where events end, and what they are, read in frames of this size.
    fn cut(text: &[u8], size: usize) -> Vec<(usize, String)> {
        let mut splitter = Splitter::new(LONGEST);
        let (mut at, mut found) = (0, Vec::new());
        for frame in text.chunks(size.max(1)) {
            let mut rest = frame;
            while !rest.is_empty() {
                let (taken, event) = splitter.read(rest);
                at += taken;
                if let Some(event) = event {
                    found.push((at, format!("{event:?}")));
                }
                rest = &rest[taken..];
            }
        }
        found.push((at, format!("{:?}", splitter.leftover())));
        found
    }

    fn data(text: &str) -> Vec<String> {
        let mut splitter = Splitter::new(LONGEST);
        let (mut rest, mut found) = (text.as_bytes(), Vec::new());
        while !rest.is_empty() {
            let (taken, event) = splitter.read(rest);
            if let Some(Cut::Event(Parts { data: Some(d), .. })) = event {
                found.push(String::from_utf8_lossy(d).into_owned());
            }
            rest = &rest[taken..];
        }
        found
    }

    #[test]
    fn line_ends_and_spaces() {
        for text in [
            "data: a\n\ndata: b\n\n",
            "data: a\r\rdata: b\r\r",
            "data: a\r\n\r\ndata: b\r\n\r\n",
            "data:a\n\ndata:b\r\n\n",
            "\u{feff}data: a\n\n\n\ndata: b\n\n",
            ": c\n\nid: 1\nretry: 5\ndata: a\nevent: x\n\ndata: b\n\ndata: never",
        ] {
            assert_eq!(data(text), ["a", "b"], "{text:?}");
        }
        assert_eq!(data("data: a\ndata\ndata:  b\n\n"), ["a\n\n b"]);
        assert_eq!(data("a\u{feff}data: a\n\n"), [""; 0], "not at the start");
    }

    #[test]
    fn what_is_no_field_is_kept_aside() {
        let mut splitter = Splitter::new(LONGEST);
        let text = b"{\n  \"error\": 1\n}\n\n";
        let (taken, event) = splitter.read(text);
        assert_eq!(taken, text.len());
        let Some(Cut::Event(parts)) = event else {
            panic!("no event");
        };
        assert_eq!(parts.stray, b"{\n  \"error\": 1\n}\n");
        assert_eq!(parts.data, None);
    }

    #[test]
    fn a_long_event_is_told_at_its_bound_and_passed_over() {
        let text = format!("data: {}\ndata: y\n\ndata: z\n\n", "x".repeat(LONGEST));
        let mut splitter = Splitter::new(LONGEST);
        let (taken, event) = splitter.read(text.as_bytes());
        assert_eq!(taken, LONGEST);
        assert_eq!(event, Some(Cut::TooLong { data: true }));
        assert!(splitter.is_too_long());
        let (more, event) = splitter.read(&text.as_bytes()[taken..]);
        assert_eq!(event, Some(Cut::Event(Parts::default())));
        let (last, event) = splitter.read(&text.as_bytes()[taken + more..]);
        assert_eq!(taken + more + last, text.len());
        let Some(Cut::Event(parts)) = event else {
            panic!("no event");
        };
        assert_eq!(parts.data, Some(b"z".as_slice()));
        let comment = format!(": {}", "x".repeat(LONGEST));
        let mut splitter = Splitter::new(LONGEST);
        let (_, event) = splitter.read(comment.as_bytes());
        assert_eq!(event, Some(Cut::TooLong { data: false }));
    }

    #[test]
    fn little_is_kept_whatever_comes() {
        let mut splitter = Splitter::new(LONGEST);
        for _ in 0..10_000 {
            let mut rest: &[u8] = b"data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\nnoise\n";
            while !rest.is_empty() {
                let (taken, _) = splitter.read(rest);
                rest = &rest[taken..];
            }
            let kept = splitter.line.len() + splitter.data.len() + splitter.stray.len();
            assert!(kept <= LONGEST, "{kept}");
        }
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(
            text in "(data: ?|event: ?|: |x|\r|\n|\r\n|\n\n|\u{feff}|é|.{0,40}|error){0,30}",
            size in 1usize..40,
        ) {
            let whole = cut(text.as_bytes(), usize::MAX);
            prop_assert_eq!(cut(text.as_bytes(), size), whole);
        }
    }
}
