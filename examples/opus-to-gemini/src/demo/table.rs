//! What an incident looks like on a terminal of 80 columns.

use std::{fmt, time::Duration};

use super::{Change, Incident, Played, Settings};

/// The line above the phases.
pub const HEADER: &str =
    "phase      Anthropic         calls  by Opus  by Gemini  attempts     p50     p99";

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls: usize = self.phases.iter().map(|p| p.calls).sum();
        let (opus, gemini) = self.within;
        writeln!(
            f,
            "{calls} calls, one every {:?}, through an incident at Anthropic.",
            self.every
        )?;
        writeln!(
            f,
            "An attempt may take {opus:?} at Opus, {gemini:?} at Gemini."
        )?;
        write!(
            f,
            "Played {} times as fast, in about {:.0} s; the figures are as in the incident.",
            self.speed,
            self.duration().as_secs_f64()
        )
    }
}

impl fmt::Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<10} {:<16} {:>6} {:>8} {:>10} {:>9} {:>7} {:>7}",
            self.phase.name,
            self.phase.does(),
            self.calls(),
            self.by_opus,
            self.by_gemini,
            self.attempts,
            seconds(self.quantile(50)),
            seconds(self.quantile(99)),
        )
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:>8}  {:<7} {:>9} -> {}",
            seconds(self.at),
            self.target,
            self.from.as_str(),
            self.to
        )?;
        match self.reason {
            Some(reason) => write!(f, " ({reason})"),
            None => Ok(()),
        }
    }
}

/// What is below the phases.
impl fmt::Display for Incident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Breakers")?;
        for change in &self.changes {
            writeln!(f, "{change}")?;
        }
        if self.changes.is_empty() {
            writeln!(f, "   no change")?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "Requests: {} sent by the records, {} arrived by the vendors' logs.",
            self.sent, self.arrived
        )?;
        write!(
            f,
            "Answered: {} of {} calls.",
            self.answered(),
            self.calls()
        )
    }
}

fn seconds(d: Duration) -> String {
    format!("{:.1} s", d.as_secs_f64())
}
