//! What is done, on disk as soon as it is.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{Item, Outcome, lock::Lock};

/// The output of a batch while it grows.
///
/// Results are appended to `OUT.part` as they come, each in one write, with the number of their
/// line: what was written is there after a kill. At the end they are put in the order of the input
/// and renamed to `OUT`.
#[derive(Debug)]
pub struct Journal {
    out: PathBuf,
    part: PathBuf,
    file: File,
    /// By line; of two results for one line the later.
    done: HashMap<usize, Done>,
    /// Last, so that all else is done when it goes.
    _lock: Lock,
}

#[derive(Clone, Debug)]
struct Done {
    /// The digest of the line that it is of.
    input: String,
    ok: bool,
    text: String,
}

/// An output that cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// There is one from an earlier run.
    #[error("{0} is there already: --resume goes on with it, or choose another --out")]
    IsThere(PathBuf),
    /// There is one that is nothing of a batch's: it would be lost.
    #[error("{0} is not a result of batch; choose another --out")]
    Foreign(PathBuf),
    /// Another batch writes it now.
    #[error("{out} is being written by {process}: wait for it, or choose another --out")]
    Busy {
        /// The output.
        out: PathBuf,
        /// Who writes it.
        process: String,
    },
    /// Answers that are there are of another input.
    #[error(
        "the input is not what it was: {count} of the answers in {out} are to lines that say \
         something else now or are gone, line {line} first. Give the input of then, or choose \
         another --out; --edited asks those lines anew and drops their answers"
    )]
    Edited {
        /// The output.
        out: PathBuf,
        /// How many answers are not to the input.
        count: usize,
        /// The line of the first of them, from 1.
        line: usize,
    },
    /// The file system said no.
    #[error("{path} cannot be written")]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Journal {
    /// Begins an output.
    ///
    /// # Errors
    ///
    /// There is one already, whole or in part; there is a file in its place that is none; another
    /// batch writes it; or the file cannot be made.
    pub fn create(out: &Path) -> Result<Self, JournalError> {
        let lock = Lock::take(out, beside(out, ".lock"))?;
        // What is not ours is told first: to go on with it is no way out.
        earlier(out)?;
        for path in [out.to_owned(), beside(out, ".part")] {
            if path.exists() {
                return Err(JournalError::IsThere(path));
            }
        }
        Self::open(out, HashMap::new(), lock)
    }

    /// Goes on with an output, whole or in part; begins one if there is none. `edited` says that
    /// answers to lines that these items do not have may go. More lines at the end are no edit, nor
    /// is a change of a line that failed.
    ///
    /// # Errors
    ///
    /// There is a file in its place that is none; another batch writes it; it has answers to other
    /// lines; or a file cannot be read or written.
    pub fn resume(out: &Path, items: &[Item], edited: bool) -> Result<Self, JournalError> {
        let lock = Lock::take(out, beside(out, ".lock"))?;
        let done = earlier(out)?;
        if !edited {
            same_input(out, &done, items)?;
        }
        Self::open(out, done, lock)
    }

    fn open(out: &Path, done: HashMap<usize, Done>, lock: Lock) -> Result<Self, JournalError> {
        let part = beside(out, ".part");
        let failed = |source| JournalError::Io {
            path: part.clone(),
            source,
        };
        let file = OpenOptions::new().create(true).append(true).open(&part);
        let mut file = file.map_err(failed)?;
        // A kill can leave half a line behind, which the next result must not become a part of.
        file.write_all(b"\n").map_err(failed)?;
        Ok(Self {
            out: out.to_owned(),
            part,
            file,
            done,
            _lock: lock,
        })
    }

    /// Whether an item was answered in an earlier run. One that failed is tried again, and one
    /// whose line says something else now is another item.
    pub fn has(&self, item: &Item) -> bool {
        let done = self.done.get(&item.line);
        done.is_some_and(|done| done.ok && done.input == item.digest)
    }

    /// Writes what came of an item.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn add(&mut self, item: &Item, outcome: &Outcome) -> Result<(), JournalError> {
        let text = outcome.line(item).to_string();
        let written = self.file.write_all(format!("{text}\n").as_bytes());
        written.map_err(|source| JournalError::Io {
            path: self.part.clone(),
            source,
        })?;
        let done = Done {
            input: item.digest.clone(),
            ok: outcome.is_ok(),
            text,
        };
        self.done.insert(item.line, done);
        Ok(())
    }

    /// Puts what came of these items in their order, in the place of `OUT`.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn finish(self, items: &[Item]) -> Result<(), JournalError> {
        let sorted = beside(&self.out, ".sorted");
        let write = || {
            let mut file = io::BufWriter::new(File::create(&sorted)?);
            for done in items.iter().filter_map(|item| self.done.get(&item.line)) {
                writeln!(file, "{}", done.text)?;
            }
            file.into_inner()
                .map_err(io::IntoInnerError::into_error)?
                .sync_all()?;
            // Until the old one is gone, both are whole: a kill between the two loses nothing.
            fs::rename(&sorted, &self.out)?;
            fs::remove_file(&self.part)
        };
        write().map_err(|source| JournalError::Io {
            path: self.out.clone(),
            source,
        })
    }
}

fn beside(out: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(out.as_os_str());
    name.push(ending);
    PathBuf::from(name)
}

/// Whether every answer is to a line as the input has it.
fn same_input(out: &Path, done: &HashMap<usize, Done>, items: &[Item]) -> Result<(), JournalError> {
    let now: HashMap<usize, &str> = items.iter().map(|i| (i.line, i.digest.as_str())).collect();
    let answered = done.iter().filter(|(_, done)| done.ok);
    let other = answered.filter(|(line, done)| now.get(line).copied() != Some(&*done.input));
    let lines: Vec<usize> = other.map(|(line, _)| *line).collect();
    match lines.iter().min() {
        None => Ok(()),
        Some(first) => Err(JournalError::Edited {
            out: out.to_owned(),
            count: lines.len(),
            line: *first,
        }),
    }
}

/// What earlier runs did, if all that is there is theirs.
fn earlier(out: &Path) -> Result<HashMap<usize, Done>, JournalError> {
    let mut done = HashMap::new();
    // The sorted one says nothing new, and is written over.
    let (sorted, part) = (beside(out, ".sorted"), beside(out, ".part"));
    for (path, torn) in [(sorted.as_path(), true), (out, false), (&part, true)] {
        match read(path, torn, &mut done) {
            Ok(true) => {}
            Ok(false) => return Err(JournalError::Foreign(path.to_owned())),
            Err(source) => {
                return Err(JournalError::Io {
                    path: path.to_owned(),
                    source,
                });
            }
        }
    }
    Ok(done)
}

/// Reads results; whether there is nothing else. With `torn`, half a result may be there too, as
/// a kill leaves it.
fn read(path: &Path, torn: bool, done: &mut HashMap<usize, Done>) -> io::Result<bool> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => return Ok(false),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    }
    for text in fs::read(path)?.split(|b| *b == b'\n') {
        let text = text.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let value = serde_json::from_slice::<Value>(text);
        match value.as_ref().ok().and_then(|value| result(value, text)) {
            Some((line, entry)) => {
                done.insert(line, entry);
            }
            None if torn && value.is_err() && text.starts_with(b"{") => {}
            None => return Ok(false),
        }
    }
    Ok(true)
}

fn result(value: &Value, text: &[u8]) -> Option<(usize, Done)> {
    let line = usize::try_from(value.get("line")?.as_u64()?).ok()?;
    let entry = Done {
        input: value.get("input")?.as_str()?.to_owned(),
        ok: value.get("error")?.is_null(),
        text: String::from_utf8_lossy(text).into_owned(),
    };
    Some((line, entry))
}
