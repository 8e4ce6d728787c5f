//! Plays an incident.

use std::{io, ops::RangeInclusive, time::Duration};

use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tower_spillway_core::{Chance, clock};

use super::{Change, Phase, Played, Settings, timeline};
use crate::{
    chat::{Asked, Chat, ask},
    config::Config,
    fake::{FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, FakeVendor, Fakes},
    pipeline::{BuildError, Pipeline, Upstream},
};

/// An incident that could not be played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DemoError {
    /// The fake vendors could not listen on loopback.
    #[error("the fake vendors could not be started")]
    Fakes(#[from] io::Error),
    /// The settings make no pipeline.
    #[error("the pipeline could not be built")]
    Build(#[from] BuildError),
}

/// An incident that was played.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Incident {
    /// What came of each phase.
    pub phases: Vec<Played>,
    /// What breakers did.
    pub changes: Vec<Change>,
    /// Requests sent, by the records of the calls.
    pub sent: usize,
    /// Requests that arrived, by the logs of both vendors.
    pub arrived: usize,
}

impl Incident {
    /// Calls that were made.
    pub fn calls(&self) -> usize {
        self.phases.iter().map(Played::calls).sum()
    }

    /// Calls that were answered.
    pub fn answered(&self) -> usize {
        self.phases.iter().map(|p| p.answered).sum()
    }
}

/// Plays an incident; `on_phase` hears of each phase once all its calls have ended.
///
/// # Errors
///
/// [`DemoError`]; a call without an answer is none, but shows in the figures.
pub async fn play(
    settings: &Settings,
    on_phase: impl FnMut(&Played),
) -> Result<Incident, DemoError> {
    let chance = Chance::seeded(settings.seed);
    let fakes = Fakes::start(&chance).await?;
    let pipeline = pipeline(settings, &fakes, &chance)?;
    let speed = settings.speed.max(1);
    let scaled = |of: &RangeInclusive<Duration>| *of.start() / speed..=*of.end() / speed;
    fakes.anthropic.set_latency(scaled(&settings.opus));
    fakes.gemini.set_latency(scaled(&settings.gemini));

    let start = clock::now();
    let mut changes = Vec::new();
    let (started, phases) = mpsc::unbounded_channel();
    let calls = async {
        let start_all = start_calls(settings, &pipeline, &fakes.anthropic, start, started);
        tokio::join!(start_all, tally(phases, speed, on_phase)).1
    };
    let phases = tokio::select! {
        phases = calls => phases,
        never = timeline::watch(pipeline.breakers(), start, speed, |c| changes.push(c)) => {
            match never {}
        }
    };
    let arrived = fakes.anthropic.log().len() + fakes.gemini.log().len();
    fakes.stop().await;
    Ok(Incident {
        sent: phases.iter().map(|p| p.attempts).sum(),
        phases,
        changes,
        arrived,
    })
}

fn pipeline(settings: &Settings, fakes: &Fakes, chance: &Chance) -> Result<Pipeline, BuildError> {
    let (opus, gemini) = settings.within;
    let opus = Upstream::opus(FAKE_ANTHROPIC_KEY)
        .url(fakes.anthropic.url())
        .within(opus, opus);
    let gemini = Upstream::gemini(FAKE_GEMINI_KEY)
        .url(fakes.gemini.url())
        .within(gemini, gemini);
    Pipeline::builder()
        .target(opus.at_speed(settings.speed))
        .target(gemini.at_speed(settings.speed))
        .config(Config::interactive().at_speed(settings.speed))
        .chance(chance.clone())
        .build()
}

/// The calls of a phase that are under way.
type Calls = JoinSet<Asked>;

/// Starts calls at a steady pace, whatever became of those before.
async fn start_calls(
    settings: &Settings,
    pipeline: &Pipeline,
    anthropic: &FakeVendor,
    start: Instant,
    started: mpsc::UnboundedSender<(Phase, Calls)>,
) {
    let speed = settings.speed.max(1);
    let mut next = start;
    let mut number = 0_usize;
    for phase in &settings.phases {
        anthropic.set(phase.at_speed(speed));
        let mut calls = Calls::new();
        for _ in 0..phase.calls {
            number += 1;
            let chat = Chat::new("How are you?").id(number.to_string());
            let pipeline = pipeline.clone();
            calls.spawn(async move { ask(&pipeline, &chat).await });
            next += settings.every / speed;
            sleep_until(next).await;
        }
        // Nobody listens once the whole play was dropped.
        started.send((phase.clone(), calls)).ok();
    }
}

/// Awaits the calls of each phase.
async fn tally(
    mut phases: mpsc::UnboundedReceiver<(Phase, Calls)>,
    speed: u32,
    mut on_phase: impl FnMut(&Played),
) -> Vec<Played> {
    let mut all = Vec::new();
    while let Some((phase, mut calls)) = phases.recv().await {
        let mut played = Played::new(phase);
        // A call that panicked has no record, and is missed in the sum.
        while let Some(ended) = calls.join_next().await {
            if let Ok(asked) = ended {
                played.add(asked.answer.is_ok(), &asked.report, speed);
            }
        }
        on_phase(&played);
        all.push(played);
    }
    all
}
