//! What all chains of a configuration share, where models go, and what a reload keeps.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::time::Duration;

use opus_to_gemini::{
    chat::{Asked, Chat, ask},
    config::Config,
    fake::{Behaviour, Did, FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, Fakes},
    pipeline::{BuildError, Fleet, NoChain, Pipeline},
};
use secrecy::SecretString;
use tower_circuit_breaker::State;
use tower_spillway_core::Chance;

fn key(variable: &str) -> Option<SecretString> {
    match variable {
        "ANTHROPIC_API_KEY" => Some(FAKE_ANTHROPIC_KEY.into()),
        "GEMINI_API_KEY" => Some(FAKE_GEMINI_KEY.into()),
        _ => None,
    }
}

/// What the text says, with the fakes in the place of the vendors.
fn config(fakes: &Fakes, text: &str) -> Config {
    let mut config = Config::from_toml(text).unwrap();
    config.targets.get_mut("opus").unwrap().url = fakes.anthropic.url();
    config.targets.get_mut("gemini").unwrap().url = fakes.gemini.url();
    config.backoff.base = Duration::from_millis(1);
    config
}

async fn fakes() -> Fakes {
    Fakes::start(&Chance::seeded(5)).await.unwrap()
}

fn fleet(fakes: &Fakes, text: &str) -> Fleet {
    Fleet::new(&config(fakes, text), key).unwrap()
}

async fn hello(pipeline: &Pipeline) -> Asked {
    ask(pipeline, &Chat::new("hello")).await
}

async fn served_by(fleet: &Fleet, model: &str) -> String {
    let asked = hello(&fleet.route(model).unwrap()).await;
    asked.report.target.unwrap().to_string()
}

fn state(fleet: &Fleet, target: &str) -> State {
    fleet.member(target).unwrap().breaker().unwrap().state()
}

const SOLO: &str = "[chains]\nsolo = [\"opus\"]\nback = [\"gemini\", \"opus\"]\n";

#[tokio::test]
async fn a_model_goes_where_its_name_the_longest_pattern_or_its_target_says() {
    let fakes = fakes().await;
    let text = format!(
        "{SOLO}[routes]\n\"gpt-*\" = \"back\"\n\"gpt-4*\" = \"solo\"\ngpt-4o = [\"gemini\"]\n\
         \"*-mini\" = \"gemini\"\n"
    );
    let fleet = fleet(&fakes, &text);
    for (model, first) in [
        ("claude-opus", "opus"),
        ("gpt-4o", "gemini"),
        ("gpt-4.1", "opus"),
        ("gpt-5", "gemini"),
        ("o9-mini", "gemini"),
        // As their targets call them.
        ("claude-opus-5", "opus"),
        ("gemini-2.5-pro", "gemini"),
        ("gemini", "gemini"),
    ] {
        assert_eq!(served_by(&fleet, model).await, first, "{model}");
    }
    assert!(fleet.route("llama").is_none());
    // A target's own model begins the chain that begins with it.
    let breakers = |model| fleet.route(model).unwrap().breakers().len();
    assert_eq!(
        (breakers("claude-opus-5"), breakers("gemini-2.5-pro")),
        (2, 2)
    );
    assert_eq!((breakers("gpt-4.1"), breakers("gpt-4o")), (1, 1));
    let models = ["claude-opus", "gpt-4o", "claude-opus-5", "gemini-2.5-pro"];
    assert_eq!(fleet.models(), models);
    let text = format!("{text}\"*\" = \"default\"\n");
    let open = fleet.reload(&config(&fakes, &text), key).unwrap();
    assert!(open.route("llama").is_some());
    assert_eq!(open.route("gemini").unwrap().breakers().len(), 2);
}

#[tokio::test]
async fn a_target_that_is_down_for_one_chain_is_down_for_all() {
    let fakes = fakes().await;
    let fleet = fleet(&fakes, SOLO);
    assert!(fleet.usable());
    fakes.anthropic.set(Behaviour::Fail { status: 500 });
    hello(&fleet.chain(&["opus".into()]).unwrap()).await;
    assert_eq!(state(&fleet, "opus"), State::Open);
    let reached = fakes.anthropic.log().len();
    assert_eq!(served_by(&fleet, "claude-opus").await, "gemini");
    assert_eq!(fakes.anthropic.log().len(), reached);
    let usable: Vec<_> = fleet.members().iter().map(|m| m.is_usable()).collect();
    assert_eq!((usable, fleet.usable()), (vec![false, true], true));
}

#[tokio::test]
async fn a_hint_that_one_chain_hears_holds_all() {
    let fakes = fakes().await;
    let fleet = fleet(&fakes, SOLO);
    let retry_after = Duration::from_secs(30);
    fakes.anthropic.next(1, Behaviour::Throttle { retry_after });
    assert_eq!(served_by(&fleet, "claude-opus").await, "gemini");
    assert!(fleet.member("opus").unwrap().retry_in() > Some(Duration::from_secs(20)));
    assert_eq!(served_by(&fleet, "claude-opus-5").await, "gemini");
    assert_eq!(fakes.anthropic.log().len(), 1);
    // Kept over a reload; gone with another account.
    let held = |fleet: &Fleet| fleet.member("opus").unwrap().retry_in().is_some();
    let same = fleet.reload(&config(&fakes, SOLO), key).unwrap();
    assert!(held(&same));
    let other = fleet.reload(&config(&fakes, SOLO), |_| Some("another".into()));
    assert!(!held(&other.unwrap()));
}

#[tokio::test]
async fn a_reload_keeps_how_targets_are_whose_figures_stay() {
    let fakes = fakes().await;
    let old = fleet(&fakes, "");
    for member in old.members() {
        member
            .breaker()
            .unwrap()
            .force_open_for(Duration::from_secs(600));
    }
    let reload = |text: &str| old.reload(&config(&fakes, text), key).unwrap();
    for (text, opus, gemini) in [
        ("", State::Open, State::Open),
        ("[backoff]\ncap = \"9s\"", State::Open, State::Open),
        ("[targets.opus]\nmax_tokens = 7", State::Open, State::Open),
        (
            "[targets.opus]\nmodel = \"other\"",
            State::Closed,
            State::Open,
        ),
        (
            "[targets.gemini.breaker]\nfailures = 9",
            State::Open,
            State::Closed,
        ),
        ("[breaker]\nopen = \"11s\"", State::Closed, State::Closed),
    ] {
        let new = reload(text);
        assert_eq!(
            (state(&new, "opus"), state(&new, "gemini")),
            (opus, gemini),
            "{text}"
        );
    }
    let mut moved = config(&fakes, "");
    moved.targets.get_mut("opus").unwrap().url = fakes.gemini.url();
    assert_eq!(
        state(&old.reload(&moved, key).unwrap(), "opus"),
        State::Closed
    );
    // The old one is as it was.
    assert_eq!(state(&old, "opus"), State::Open);
    assert!(!old.usable());
}

#[tokio::test]
async fn calls_under_way_keep_their_permits_over_a_reload() {
    let fakes = fakes().await;
    let old = fleet(&fakes, "");
    fakes.anthropic.set(Behaviour::Hang);
    let pipeline = old.route("claude-opus").unwrap();
    let call = tokio::spawn(async move { hello(&pipeline).await });
    while old.member("opus").unwrap().in_flight() == 0 {
        tokio::task::yield_now().await;
    }
    let under_way = |fleet: &Fleet| {
        let opus = fleet.member("opus").unwrap();
        (opus.in_flight(), opus.most_in_flight())
    };
    let new = old.reload(&config(&fakes, ""), key).unwrap();
    drop(old);
    assert_eq!(under_way(&new), (1, 50));
    let fewer = new.reload(&config(&fakes, "[targets.opus]\nin_flight = 7"), key);
    assert_eq!(under_way(&fewer.unwrap()), (0, 7));
    call.abort();
    call.await.unwrap_err();
    assert_eq!(under_way(&new), (0, 50));
}

#[tokio::test]
async fn a_target_that_drains_gets_no_call_and_ends_what_it_has() {
    let fakes = fakes().await;
    let old = fleet(&fakes, "");
    fakes.anthropic.set(Behaviour::Slow { factor: 20 });
    let pipeline = old.route("claude-opus").unwrap();
    let call = tokio::spawn(async move { hello(&pipeline).await });
    while fakes.anthropic.log().is_empty() {
        tokio::task::yield_now().await;
    }
    let text = "[targets.opus]\nenabled = false";
    // Nothing is sent there: no key is needed.
    let gemini = |name: &str| key(name).filter(|_| name == "GEMINI_API_KEY");
    let new = old.reload(&config(&fakes, text), gemini).unwrap();
    drop(old);
    let opus = new.member("opus").unwrap();
    assert!(!opus.is_enabled() && !opus.is_usable() && opus.breaker().is_none());
    assert_eq!(served_by(&new, "claude-opus").await, "gemini");
    assert_eq!(
        new.models(),
        ["claude-opus", "claude-opus-5", "gemini-2.5-pro"]
    );
    let asked = call.await.unwrap();
    assert_eq!(asked.report.target.unwrap().as_str(), "opus");
    assert!(asked.answer.is_ok());
    assert_eq!(fakes.anthropic.log().len(), 1);
    // One that stands alone is not there any more.
    let alone = "[chains]\nsolo = [\"opus\"]\n[routes]\nonly = \"solo\"\n";
    let alone = new
        .reload(&config(&fakes, &format!("{alone}{text}")), key)
        .unwrap();
    assert!(alone.route("only").is_none());
}

#[tokio::test]
async fn a_request_brings_its_own_chain() {
    let fakes = fakes().await;
    let fleet = fleet(&fakes, "");
    let models = |models: &[&str]| models.iter().map(|m| (*m).to_owned()).collect::<Vec<_>>();
    // Of a route the first target counts: the chain is the caller's own.
    let chain = fleet.chain(&models(&["gemini-2.5-pro", "claude-opus", "gemini"]));
    let chain = chain.unwrap();
    assert_eq!(chain.breakers().len(), 2);
    fakes.gemini.set(Behaviour::Fail { status: 503 });
    let asked = hello(&chain).await;
    assert_eq!(asked.report.target.unwrap().as_str(), "opus");
    assert!(
        fakes
            .gemini
            .log()
            .iter()
            .all(|e| e.did == Did::Answered(503))
    );
    let unknown = fleet.chain(&models(&["gemini", "nobody"])).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no model nobody");
    assert_eq!(fleet.chain(&[]).unwrap_err(), NoChain::Empty);
}

#[tokio::test]
async fn probes_run_once_and_end_with_their_target() {
    let fakes = fakes().await;
    let old = fleet(&fakes, "");
    let mut running: Vec<_> = old.probes().map(tokio::spawn).collect();
    assert_eq!(running.len(), 2);
    assert_eq!(old.probes().count(), 0);
    assert_eq!(old.route("claude-opus").unwrap().probes().count(), 0);
    let same = old.reload(&config(&fakes, ""), key).unwrap();
    assert_eq!(same.probes().count(), 0);
    let changed = config(&fakes, "[targets.opus]\nmodel = \"other\"");
    let new = same.reload(&changed, key).unwrap();
    assert_eq!(new.probes().count(), 1);
    drop((old, same));
    // That of the old opus; the other one's target is there.
    let first = running.remove(0);
    first.await.unwrap();
    assert!(!running[0].is_finished());
    drop(new);
    running.remove(0).await.unwrap();
}

#[test]
fn every_missing_key_is_named_and_only_those_that_are_used() {
    let missing = Fleet::new(&Config::default(), |_| None).unwrap_err();
    assert!(matches!(&missing, BuildError::Several(all) if all.len() == 2));
    let said = missing.to_string();
    assert!(
        said.contains("ANTHROPIC_API_KEY") && said.contains("GEMINI_API_KEY"),
        "{said}"
    );

    let local = "[targets.local]\nurl = \"http://127.0.0.1:1/v1\"\nmodel = \"llama\"\n\
                 [chains]\ndefault = [\"local\"]\n";
    let fleet = Fleet::new(&Config::from_toml(local).unwrap(), |_| None).unwrap();
    let member = &fleet.members()[0];
    assert_eq!(
        (member.name(), member.endpoint().as_str()),
        ("local", "127.0.0.1:1")
    );
    assert_eq!(fleet.models(), ["claude-opus", "llama"]);
}

#[tokio::test]
async fn all_chains_have_one_budget_and_a_reload_keeps_it() {
    let fakes = fakes().await;
    let fleet = fleet(
        &fakes,
        "[budget]\nreserve = 1\npercent = 0\n[breaker]\nenabled = false",
    );
    fakes.anthropic.set(Behaviour::Fail { status: 500 });
    fakes.gemini.set(Behaviour::Fail { status: 500 });
    let sends = async |fleet: &Fleet| {
        let asked = hello(&fleet.route("claude-opus").unwrap()).await;
        asked.report.sends()
    };
    // One retry in all; hops are free.
    assert_eq!(sends(&fleet).await, 3);
    assert_eq!(sends(&fleet).await, 2);
    let mut same = config(
        &fakes,
        "[budget]\nreserve = 1\npercent = 0\n[breaker]\nenabled = false",
    );
    assert_eq!(sends(&fleet.reload(&same, key).unwrap()).await, 2);
    same.budget.reserve = 2;
    assert_eq!(sends(&fleet.reload(&same, key).unwrap()).await, 4);
}
