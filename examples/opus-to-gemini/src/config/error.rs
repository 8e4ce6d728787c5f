//! What is wrong with a file.

use std::fmt;

/// Something that a file says, and where. Shows no key: a file names the variables that hold them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    line: Option<usize>,
    reason: String,
}

/// The most characters of a reason, which may quote a file that no person wrote.
const LONGEST: usize = 500;

impl Finding {
    pub(crate) fn new(line: Option<usize>, reason: impl Into<String>) -> Self {
        let mut reason = reason.into();
        if let Some((cut, _)) = reason.char_indices().nth(LONGEST) {
            reason.truncate(cut);
            reason.push('…');
        }
        Self { line, reason }
    }

    /// The line, from 1; `None` if it is not one line that it is about.
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    /// What is wrong, or odd.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.reason)
    }
}

/// All that is wrong with a file, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(Vec<Finding>);

impl ConfigError {
    /// Of at least one thing that is wrong.
    pub(crate) fn new(mut findings: Vec<Finding>) -> Self {
        sort(&mut findings);
        Self(findings)
    }

    /// What is wrong; at least one thing.
    pub fn findings(&self) -> &[Finding] {
        &self.0
    }
}

/// In the order of lines; what has none comes last.
pub(super) fn sort(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| finding.line.unwrap_or(usize::MAX));
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            finding.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}
