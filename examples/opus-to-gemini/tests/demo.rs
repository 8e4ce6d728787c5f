//! The incident of the demo, short and fast.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::{
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::Mutex;

use opus_to_gemini::{
    demo::{Figures, Kind, Phase, Played, Settings, play},
    fake::Behaviour,
};

fn short() -> Settings {
    let retry_after = Duration::from_secs(20);
    let mut settings = Settings::default();
    settings.speed = 10;
    settings.phases = vec![
        Phase::new("healthy", Behaviour::Answer, 6),
        Phase::new("hang", Behaviour::Hang, 30),
        Phase::new("errors", Behaviour::Fail { status: 529 }, 12),
        Phase::new("recovery", Behaviour::Answer, 6),
        Phase::new("throttled", Behaviour::Throttle { retry_after }, 6),
        Phase::new("quota", Behaviour::Exhausted, 6),
    ];
    settings
}

fn figures(played: &Played) -> Vec<Figures> {
    let all = played
        .runs
        .iter()
        .map(|run| run.figures(&played.prices).unwrap());
    all.collect()
}

/// One at a time: what is measured is time.
static TURN: Mutex<()> = Mutex::const_new(());

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_clients_live_through_one_incident_and_the_logs_agree() {
    let _turn = TURN.lock().await;
    let ticks = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&ticks);
    let settings = short();
    let played = play(&settings, move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let played = played.await.unwrap();

    let kinds: Vec<Kind> = played.runs.iter().map(|run| run.client).collect();
    assert_eq!(kinds, [Kind::TryOther, Kind::Breaker, Kind::Stack]);
    assert_eq!(ticks.load(Ordering::Relaxed), 3 * settings.calls());
    for figures in figures(&played) {
        assert_eq!(figures.calls, settings.calls());
        // Gemini answers all the time, and everybody asks it.
        assert_eq!(figures.answered, figures.calls, "{played}");
        assert_eq!(figures.by_opus + figures.by_gemini, figures.calls);
        assert_eq!(figures.sent + figures.probes, figures.arrived);
        assert!(figures.abandoned.tokens.input > 0, "the hang was felt");
    }
    let [plain, breaker, stack] = &played.runs[..] else {
        unreachable!()
    };
    assert!(plain.changes.is_empty());
    for run in [breaker, stack] {
        assert_eq!(
            (run.changes[0].target.as_str(), run.changes[0].to.as_str()),
            ("opus", "open")
        );
    }
    // Every call of the hang costs the first client the whole limit; the stack three, and its
    // probes.
    let abandoned =
        |run: &opus_to_gemini::demo::Run| run.anthropic.iter().filter(|r| r.abandoned()).count();
    assert!(
        abandoned(plain) > 2 * abandoned(stack),
        "{} {}",
        abandoned(plain),
        abandoned(stack)
    );

    // The table is made of what the JSON holds.
    let json = serde_json::to_string(&played).unwrap();
    let read: Played = serde_json::from_str(&json).unwrap();
    assert_eq!(read, played);
    let table = read.to_string();
    assert_eq!(table, played.to_string());
    for line in table.lines().chain(settings.to_string().lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    for row in [
        "success",
        "served by Opus",
        "first content",
        "attempts per call",
        "abandoned",
    ] {
        assert!(table.contains(row), "{table}");
    }
    assert!(!json.contains("key"), "no key, nor its label");
}

#[test]
fn the_default_incident_is_over_soon_and_fits_a_terminal() {
    let settings = Settings::default();
    let names: Vec<_> = settings.phases.iter().map(|p| p.name.to_string()).collect();
    assert_eq!(
        names,
        [
            "healthy",
            "throttled",
            "hang",
            "errors",
            "both",
            "recovery",
            "quota"
        ]
    );
    assert!(settings.lasts() / settings.speed < Duration::from_secs(30));
    for line in settings.to_string().lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(settings.to_string().contains("Played 15 times as fast"));
}

#[test]
fn the_binary_states_its_speed_and_is_quiet_while_it_plays() {
    let _turn = TURN.blocking_lock();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("demo.json");
    let out = Command::new(env!("CARGO_BIN_EXE_opus-to-gemini"))
        .args(["demo", "--speed", "30", "--json"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(out.status.success());
    assert_eq!(String::from_utf8(out.stderr).unwrap(), "");
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(said.contains("Played 30 times as fast"), "{said}");
    for line in said.lines().filter(|l| !l.contains("demo.json")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let json = std::fs::read(&file).unwrap();
    let played: Played = serde_json::from_slice(&json).unwrap();
    assert!(said.contains(&played.to_string()));
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_written_is_told_at_once_and_costs_no_table() {
    let _turn = TURN.blocking_lock();
    let demo = |file: &std::path::Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_opus-to-gemini"));
        command.args(["demo", "--speed", "60", "--json"]).arg(file);
        command.output().unwrap()
    };
    let dir = tempfile::tempdir().unwrap();
    let out = demo(&dir.path().join("none").join("demo.json"));
    assert!(!out.status.success());
    assert!(out.stdout.is_empty(), "nothing was played");

    // Can be opened, and not be written.
    let out = demo("/dev/full".as_ref());
    assert!(!out.status.success());
    let said = String::from_utf8(out.stderr).unwrap();
    assert!(said.contains("/dev/full cannot be written"), "{said}");
    let said = String::from_utf8(out.stdout).unwrap();
    assert!(said.contains("attempts per call"), "{said}");
}
