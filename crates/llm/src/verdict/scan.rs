//! Looks for the answer in a success while it arrives.
//!
//! A success is looked into because it may be an error in disguise. Where there is an answer in it,
//! nothing more needs to be read; so that a long answer is not collected and parsed first, this
//! finds the first element of `choices` (or of the lists that other APIs have) byte by byte.

/// Lists of answers, at the top level of a body.
const LISTS: [&[u8]; 4] = [b"choices", b"content", b"candidates", b"output"];

const LONGEST_KEY: usize = 10;

/// What a body is so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Not known yet.
    Nothing,
    /// There is an answer in it.
    Answer,
}

/// See the [module docs](self).
#[derive(Debug, Default)]
pub(super) struct Scan {
    depth: u32,
    text: Text,
    /// The last text at the top level; a longer one is no key of ours.
    key: Vec<u8>,
    /// In a list that has the name of one of ours, and has no element yet.
    empty_list: bool,
    answer: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    Inside,
    /// After a backslash.
    Escaped,
}

impl Scan {
    /// Reads on.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Found {
        for byte in bytes {
            if self.answer {
                break;
            }
            self.step(*byte);
        }
        match self.answer {
            true => Found::Answer,
            false => Found::Nothing,
        }
    }

    /// Whether an answer was found.
    pub(super) fn is_answer(&self) -> bool {
        self.answer
    }

    fn step(&mut self, byte: u8) {
        match self.text {
            Text::Escaped => self.text = Text::Inside,
            Text::Inside => match byte {
                b'\\' => self.text = Text::Escaped,
                b'"' => self.text = Text::Outside,
                _ if self.depth == 1 && self.key.len() <= LONGEST_KEY => self.key.push(byte),
                _ => {}
            },
            Text::Outside => self.outside(byte),
        }
    }

    fn outside(&mut self, byte: u8) {
        if byte.is_ascii_whitespace() {
            return;
        }
        if std::mem::take(&mut self.empty_list) && byte != b']' {
            self.answer = true;
            return;
        }
        match byte {
            b'"' => {
                self.text = Text::Inside;
                self.key.clear();
            }
            b'{' => self.depth = self.depth.saturating_add(1),
            b'[' => {
                self.empty_list = self.depth == 1 && LISTS.contains(&self.key.as_slice());
                self.depth = self.depth.saturating_add(1);
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            // A value that is no list: what follows has another key.
            b',' if self.depth == 1 => self.key.clear(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn finds(body: &str) -> bool {
        Scan::default().read(body.as_bytes()) == Found::Answer
    }

    #[test]
    fn an_answer_is_an_element_of_a_known_list() {
        assert!(finds(r#"{"id":"x","choices":[{"index""#));
        assert!(finds(r#"{"choices" : [ {}]}"#));
        assert!(finds(r#"{"type":"message","content":[{}]}"#));
        assert!(!finds(r#"{"choices":[]}"#));
        assert!(!finds(r#"{"choices":null,"x":[1]}"#));
        assert!(!finds(r#"{"error":{"choices":[1]}}"#), "not at the top");
        assert!(
            !finds(r#"{"error":{"message":"\"choices\":[1]"}}"#),
            "in a text"
        );
        assert!(!finds(r#"[{"choices":[1]}]"#));
        assert!(!finds("<html>"));
    }

    proptest! {
        #[test]
        fn any_split_finds_the_same(body in ".*", at in any::<prop::sample::Index>()) {
            let bytes = body.as_bytes();
            let at = at.index(bytes.len() + 1);
            let mut split = Scan::default();
            split.read(&bytes[..at]);
            let found = split.read(&bytes[at..]);
            prop_assert_eq!(found, Scan::default().read(bytes));
        }
    }
}
