//! What an incident looks like on a terminal of 80 columns.

use std::fmt::{self, Write};

use super::{Change, Figures, Kind, Played, Quantiles, Settings, Used, settings::Phase};
use crate::fake::Behaviour;

/// What is told before it is played.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (opus, gemini) = self.within;
        writeln!(
            f,
            "An incident at Anthropic, {} s, a call every {:?}, three clients:",
            self.lasts().as_secs(),
            self.every
        )?;
        for phase in &self.phases {
            writeln!(f, "  {phase}")?;
        }
        writeln!(
            f,
            "To the first content of a stream an attempt may take {opus:?} at Opus, {gemini:?} at Gemini."
        )?;
        let seconds = (self.lasts() / self.speed.max(1)).as_secs_f64();
        write!(
            f,
            "Played {} times as fast (--speed), in about {seconds:.0} s; figures are unscaled.",
            self.speed,
        )
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let does = match self.behaviour {
            Behaviour::Throttle { retry_after } => format!("429, Retry-After {retry_after:?}"),
            Behaviour::Exhausted => "400, the spend limit is reached".into(),
            Behaviour::Fail { status } => status.to_string(),
            Behaviour::Hang => "takes requests, answers none".into(),
            Behaviour::Reset => "closes connections".into(),
            _ => "answers".into(),
        };
        write!(f, "{:<10} {:>4} s  {does}", self.name, self.lasts.as_secs())?;
        match self.gemini {
            Behaviour::Throttle { retry_after } => {
                write!(f, "; Gemini: 429, {retry_after:?} in the body")
            }
            Behaviour::Exhausted => f.write_str("; Gemini: 429, the day's quota is used up"),
            _ => Ok(()),
        }
    }
}

/// The table, then the timeline.
impl fmt::Display for Played {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures: Result<Vec<Figures>, _> = self
            .runs
            .iter()
            .map(|run| run.figures(&self.prices))
            .collect();
        let figures = figures.map_err(|_| fmt::Error)?;
        let mut head = format!("{:<26}", "");
        for run in &self.runs {
            write!(head, "{:>18}", run.client.as_str())?;
        }
        writeln!(f, "{head}")?;
        for (name, cell) in ROWS {
            let mut line = format!("{name:<26}");
            for figures in &figures {
                write!(line, "{:>18}", cell(figures))?;
            }
            writeln!(f, "{line}")?;
        }
        writeln!(
            f,
            "Prices of {}; of an abandoned attempt the prompt is counted.",
            self.prices.date
        )?;
        if self.opened_late(&figures) {
            writeln!(f, "{LATER}")?;
        }
        for run in &self.runs {
            writeln!(f, "\nBreakers of {}", run.client.as_str())?;
            if run.changes.is_empty() {
                writeln!(f, "  none, or no change")?;
            }
            for change in &run.changes {
                writeln!(f, "{change}")?;
            }
        }
        Ok(())
    }
}

const LATER: &str = "\
The stack's p99 is above its breaker's: that one counts 429s as failures,
so it was open before the hang began.";

impl Played {
    /// Whether the stack found out about the hang, and the plain breaker was open by then.
    fn opened_late(&self, figures: &[Figures]) -> bool {
        let of = |kind| {
            self.runs
                .iter()
                .zip(figures)
                .find(|(r, _)| r.client == kind)
        };
        let (Some((plain, at_plain)), Some((_, at_stack))) = (of(Kind::Breaker), of(Kind::Stack))
        else {
            return false;
        };
        let phases = self.settings.phases.iter();
        let before = phases.take_while(|(name, _)| name != "hang");
        let hang: u64 = before.map(|(_, lasts)| lasts).sum();
        let open = |c: &Change| c.to == "open" && c.at < hang;
        at_stack.latency.p99 > at_plain.latency.p99 && plain.changes.iter().any(open)
    }
}

type Cell = fn(&Figures) -> String;

const ROWS: [(&str, Cell); 17] = [
    ("calls", |f| f.calls.to_string()),
    ("success", |f| percent(f.answered, f.calls)),
    ("served by Opus", |f| f.by_opus.to_string()),
    ("served by Gemini", |f| f.by_gemini.to_string()),
    ("latency p50/p95/p99, s", |f| seconds(f.latency)),
    ("first content", |f| seconds(f.first_content)),
    ("attempts per call", |f| ratio(f.sent, f.calls)),
    ("requests sent", |f| f.sent.to_string()),
    ("requests in the logs", |f| f.arrived.to_string()),
    ("of these probes", |f| f.probes.to_string()),
    ("Opus tokens in/out", |f| tokens(f.opus)),
    ("Opus cost", |f| cost(f.opus)),
    ("Gemini tokens in/out", |f| tokens(f.gemini)),
    ("Gemini cost", |f| cost(f.gemini)),
    ("abandoned tokens in", |f| {
        f.abandoned.tokens.input.to_string()
    }),
    ("cost of abandoned attempts", |f| cost(f.abandoned)),
    ("cost in all", |f| {
        let all = f.opus.cost + f.gemini.cost + f.abandoned.cost;
        format!("{all:.4}")
    }),
];

#[expect(clippy::cast_precision_loss, reason = "counts of a demo")]
fn ratio(part: usize, whole: usize) -> String {
    format!("{:.2}", part as f64 / whole.max(1) as f64)
}

#[expect(clippy::cast_precision_loss, reason = "counts of a demo")]
fn percent(part: usize, whole: usize) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

fn seconds(q: Quantiles) -> String {
    let s = |ms: u64| format!("{}.{}", (ms + 50) / 1000, (ms + 50) % 1000 / 100);
    format!("{}/{}/{}", s(q.p50), s(q.p95), s(q.p99))
}

fn tokens(used: Used) -> String {
    format!("{} / {}", used.tokens.input, used.tokens.output)
}

fn cost(used: Used) -> String {
    format!("{:.4}", used.cost)
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, tenth) = ((self.at + 50) / 1000, (self.at + 50) % 1000 / 100);
        write!(
            f,
            "{whole:>6}.{tenth} s  {:<7} {:>9} -> {}",
            self.target, self.from, self.to
        )?;
        match &self.reason {
            Some(reason) => write!(f, " ({reason})"),
            None => Ok(()),
        }
    }
}
