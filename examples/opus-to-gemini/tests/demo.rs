//! The incident of the demo, short and fast.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::time::Duration;

use opus_to_gemini::{
    demo::{Phase, Settings, play},
    fake::Behaviour,
};
use tower_circuit_breaker::State;

fn short() -> Settings {
    let retry_after = Duration::from_secs(30);
    let mut settings = Settings::default();
    settings.speed = 20;
    settings.phases = vec![
        Phase::new("healthy", Behaviour::Answer, 2),
        Phase::new("failing", Behaviour::Fail { status: 500 }, 4),
        Phase::new("hanging", Behaviour::Hang, 4),
        Phase::new("cut", Behaviour::Cut, 4),
        Phase::new("reset", Behaviour::Reset, 4),
        Phase::new("recovered", Behaviour::Answer, 4),
        Phase::new("throttled", Behaviour::Throttle { retry_after }, 2),
    ];
    settings
}

#[tokio::test]
async fn every_call_of_an_incident_is_answered_and_the_logs_agree() {
    let mut heard = Vec::new();
    let incident = play(&short(), |phase| heard.push(phase.clone())).await;
    let incident = incident.unwrap();

    assert_eq!(incident.calls(), 24);
    assert_eq!(incident.answered(), 24);
    assert_eq!(incident.sent, incident.arrived);
    assert_eq!(heard, incident.phases);
    let served = |name: &str| {
        let phase = heard.iter().find(|p| p.phase.name == name).unwrap();
        (phase.by_opus, phase.by_gemini)
    };
    assert_eq!(served("throttled"), (0, 2));
    assert_eq!(served("failing"), (0, 4));
    assert_eq!(served("hanging"), (0, 4));
    let opened = incident.changes.iter().find(|c| c.to == State::Open);
    assert_eq!(opened.unwrap().target, "opus");
}

#[test]
fn the_demo_fits_a_terminal_and_a_coffee_break() {
    let settings = Settings::default();
    let calls: usize = settings.phases.iter().map(|p| p.calls).sum();
    assert_eq!(calls, 60);
    assert!(settings.duration() < Duration::from_secs(10));
    for line in settings
        .to_string()
        .lines()
        .chain([opus_to_gemini::demo::HEADER])
    {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
