//! One batch at a time on one output.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Seek, Write},
    path::{Path, PathBuf},
    process,
};

use super::JournalError;

const SAYS: &str = "opus-to-gemini batch, process ";

/// `OUT.lock`, with the number of the process that holds it.
///
/// The system lets go of the lock when its holder ends, however it ends: a file that a kill left
/// behind holds nobody up.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    /// Locked as long as it is open.
    _file: File,
}

impl Lock {
    pub(super) fn take(out: &Path, path: PathBuf) -> Result<Self, JournalError> {
        let failed = |source| JournalError::Io {
            path: out.to_owned(),
            source,
        };
        loop {
            // Not truncated: it may be a file of somebody else.
            let file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .open(&path);
            let mut file = file.map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                // Better without than not at all, on a file system that has no locks.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
                Err(TryLockError::Error(error)) => return Err(failed(error)),
                Err(TryLockError::WouldBlock) => {
                    return Err(JournalError::Busy {
                        out: out.to_owned(),
                        process: holder(&path),
                    });
                }
            }
            let mut said = String::new();
            let read = file.read_to_string(&mut said);
            if read.is_err() || !(said.is_empty() || said.starts_with(SAYS)) {
                return Err(JournalError::Foreign(path));
            }
            let own = format!("{SAYS}{}\n", process::id());
            let written = file
                .set_len(0)
                .and_then(|()| file.rewind())
                .and_then(|()| file.write_all(own.as_bytes()));
            written.map_err(failed)?;
            // Its last holder may have removed it since it was opened: then another batch can
            // make and lock a new one.
            if same(&file, &path) {
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is locked still; one that stays holds nobody up.
        fs::remove_file(&self.path).ok();
    }
}

/// Who holds the lock, if it can be read.
fn holder(path: &Path) -> String {
    let said = fs::read_to_string(path).unwrap_or_default();
    match said.trim_end().strip_prefix(SAYS) {
        Some(id) => format!("process {id}"),
        None => "another process".into(),
    }
}

#[cfg(unix)]
fn same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), fs::metadata(path)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// An open file cannot be removed there.
#[cfg(not(unix))]
fn same(_: &File, path: &Path) -> bool {
    path.exists()
}
