//! What is done, on disk as soon as it is.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{Item, Outcome};

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
}

#[derive(Clone, Debug)]
struct Done {
    key: String,
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
    /// There is one already, whole or in part; or the file cannot be made.
    pub fn create(out: &Path) -> Result<Self, JournalError> {
        let part = part(out);
        for path in [out, &part] {
            if path.exists() {
                return Err(JournalError::IsThere(path.to_owned()));
            }
        }
        Self::open(out, part, HashMap::new())
    }

    /// Goes on with an output, whole or in part; begins one if there is none.
    ///
    /// # Errors
    ///
    /// A file cannot be read or written.
    pub fn resume(out: &Path) -> Result<Self, JournalError> {
        let part = part(out);
        let mut done = HashMap::new();
        for path in [out, &part] {
            read(path, &mut done).map_err(|source| JournalError::Io {
                path: path.to_owned(),
                source,
            })?;
        }
        Self::open(out, part, done)
    }

    fn open(out: &Path, part: PathBuf, done: HashMap<usize, Done>) -> Result<Self, JournalError> {
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
        })
    }

    /// Whether an item was answered in an earlier run. One that failed is tried again, and one
    /// whose line says something else now is another item.
    pub fn has(&self, item: &Item) -> bool {
        let done = self.done.get(&item.line);
        done.is_some_and(|done| done.ok && done.key == item.key)
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
            key: item.key.clone(),
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
        let mut sorted = self.out.as_os_str().to_owned();
        sorted.push(".sorted");
        let sorted = PathBuf::from(sorted);
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

fn part(out: &Path) -> PathBuf {
    let mut name = OsString::from(out.as_os_str());
    name.push(".part");
    PathBuf::from(name)
}

/// Reads results; lines that are none, such as the half of one, are skipped.
fn read(path: &Path, done: &mut HashMap<usize, Done>) -> io::Result<()> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for text in bytes.split(|b| *b == b'\n') {
        let Ok(Value::Object(fields)) = serde_json::from_slice::<Value>(text) else {
            continue;
        };
        let line = fields.get("line").and_then(Value::as_u64);
        let key = fields.get("key").and_then(Value::as_str);
        let (Some(Ok(line)), Some(key)) = (line.map(usize::try_from), key) else {
            continue;
        };
        let entry = Done {
            key: key.to_owned(),
            ok: fields.get("error").is_none_or(Value::is_null),
            text: String::from_utf8_lossy(text).trim().to_owned(),
        };
        done.insert(line, entry);
    }
    Ok(())
}
