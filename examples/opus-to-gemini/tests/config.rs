//! Files: what they may say, and how they are told that they are wrong.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

use std::time::Duration;

use opus_to_gemini::{
    config::{Config, Profile},
    pipeline::{BuildError, Pipeline, Upstream},
};

fn wrong(text: &str) -> String {
    Config::from_toml(text).unwrap_err().to_string()
}

#[test]
fn an_empty_file_is_the_interactive_profile() {
    assert_eq!(Config::from_toml("").unwrap(), Config::interactive());
    let batch = Config::from_toml("profile = \"batch\"").unwrap();
    assert_eq!(batch, Config::batch());
}

#[test]
fn the_two_profiles_have_the_figures_that_they_promise() {
    let secs = Duration::from_secs;
    let chat = Config::interactive();
    assert_eq!(chat.call.plain_deadline, Some(secs(180)));
    assert_eq!(chat.call.streaming_deadline, Some(secs(60)));
    let breaker = &chat.breaker;
    let figures = (breaker.failures, breaker.open, breaker.max_open);
    assert_eq!(figures, (3, secs(10), secs(60)));
    assert_eq!(
        (chat.failover.sends_while_others, chat.failover.sends),
        (2, 4)
    );
    assert_eq!(chat.failover.patience, secs(1));

    let batch = Config::batch();
    assert_eq!(batch.call.plain_deadline, None);
    assert_eq!(
        (batch.failover.sends_while_others, batch.failover.sends),
        (2, 6)
    );
    let backoff = &batch.backoff;
    assert_eq!(
        (backoff.base, backoff.cap),
        (Duration::from_millis(800), secs(30))
    );
    assert_eq!(backoff.max_total_wait, Some(secs(60)));
    assert_eq!((batch.breaker.failures, batch.breaker.open), (5, secs(30)));
    let gemini = batch.targets["gemini"].breaker.as_ref().unwrap();
    assert_eq!((gemini.failures, gemini.open), (3, secs(60)));

    for config in [chat, batch] {
        let (opus, gemini) = (&config.targets["opus"], &config.targets["gemini"]);
        assert_eq!(
            (opus.plain_within, opus.streaming_within),
            (secs(60), secs(8))
        );
        assert_eq!(
            (gemini.plain_within, gemini.streaming_within),
            (secs(90), secs(15))
        );
        assert_eq!((opus.in_flight, gemini.in_flight), (50, 50));
        let pool = &config.pool;
        assert_eq!((pool.connections, pool.idle), (50, 20));
        assert_eq!(
            (pool.connect, pool.read_idle, pool.write),
            (secs(5), secs(60), secs(10))
        );
    }
}

#[test]
fn a_file_says_only_what_differs() {
    let config = Config::from_toml(
        r#"
        profile = "batch"
        [breaker]
        failures = 7
        [targets.gemini.breaker]
        failures = 9
        [targets.opus.breaker]
        open = "3s"
        [targets.mine]
        vendor = "openai"
        url = "https://llm.example.com/v1/chat/completions"
        model = "m"
        key_env = "MY_KEY"
        [chains]
        default = ["mine", "gemini"]
        "#,
    )
    .unwrap();
    assert_eq!(config.profile, Profile::Batch);
    let breaker = |name: &str| {
        let breaker = config.targets[name].breaker.as_ref();
        breaker.map(|b| (b.failures, b.open.as_secs()))
    };
    // Of the target in the profile; of the file's own table; of the file's table alone.
    assert_eq!(breaker("gemini"), Some((9, 60)));
    assert_eq!(breaker("opus"), Some((7, 3)));
    assert_eq!(breaker("mine"), None);
    assert_eq!(config.chains["default"], ["mine", "gemini"]);
    assert_eq!(Config::from_toml(&config.to_string()).unwrap(), config);
}

#[test]
fn whatever_is_wrong_has_its_line_and_the_reason() {
    for (text, says) in [
        (
            "\n[breaker]\nfailurs = 3",
            "line 3: unknown field `failurs`",
        ),
        ("[brakes]", "line 1: unknown field `brakes`"),
        ("a = = 1", "line 1: "),
        ("profile = \"quick\"", "line 1: unknown variant `quick`"),
        (
            "[backoff]\nbase = \"8 parsecs\"",
            "line 2: \"8 parsecs\" must be a duration",
        ),
        (
            "[backoff]\nbase = 8",
            "line 2: invalid type: integer `8`, expected a duration",
        ),
        (
            "[backoff]\nkind = \"fibonacci\"",
            "line 2: unknown variant `fibonacci`",
        ),
        (
            "[backoff]\n\ncap = \"1ms\"",
            "line 3: backoff.cap must be at least backoff.base",
        ),
        (
            "[backoff]\nbase = \"9s\"",
            "line 1: backoff.cap must be at least backoff.base",
        ),
        (
            "[budget]\nttl = \"2m\"",
            "line 2: budget.ttl must be from 1s to 60s",
        ),
        (
            "[budget]\nenabled = \"yes\"",
            "line 2: invalid type: string \"yes\", expected a boolean",
        ),
        (
            "[failover]\nsends = 0",
            "line 2: failover.sends must be at least 1",
        ),
        ("[failover]\nsends = -1", "line 2: invalid value"),
        (
            "[breaker]\nopen = \"2m\"",
            "line 1: breaker.max_open must be at least open",
        ),
        (
            "[pool]\nconnections = 0",
            "line 2: pool.connections must be at least 1",
        ),
        (
            "[gateway]\nwrite_within = \"0s\"",
            "line 2: gateway.write_within must be at least 1ms",
        ),
        (
            "[gateway]\nwrite_least = 0",
            "line 2: gateway.write_least must be at least 1",
        ),
        (
            "[prices]\ndate = \"today\"",
            "line 2: prices.date must be a day",
        ),
        (
            "[prices.models.m]\ninput = \"$1\"\noutput = \"1\"",
            "line 2: prices.models.m.input must be dollars",
        ),
        (
            "[targets.opus]\nvendor = \"acme\"",
            "line 2: vendor must be one of anthropic",
        ),
        (
            "[targets.mine]\nmodel = \"m\"",
            "line 1: targets.mine.url must be set",
        ),
        (
            "[targets.opus]\nurl = \"http://example.com/v1\"",
            "line 2: targets.opus.url must be an https address",
        ),
        (
            "[targets.opus]\nmax_tokens = 99999",
            "line 2: targets.opus.max_tokens must be at most max_tokens_cap",
        ),
        (
            "[targets.opus.breaker]\nfailures = 0",
            "line 2: targets.opus.breaker.failures must be",
        ),
        (
            "[chains]\ndefault = []",
            "line 2: chains.default must name at least one target",
        ),
        (
            "[chains]\nfast = [\"flash\"]",
            "line 2: chains.fast must name targets",
        ),
        (
            "[chains]\nfast = [\"opus\", \"opus\"]",
            "line 2: chains.fast must name each",
        ),
        (
            "[targets.\"a\\nb\"]\nurl = \"https://a.example\"\nmodel = \"m\"",
            "line 1: targets.a\nb must have a name that a line can hold",
        ),
        (
            "[call]\nplain_deadline = \"never\"",
            "line 2: \"never\" must be a duration",
        ),
    ] {
        let said = wrong(text);
        assert!(said.starts_with(says), "{text:?}: {said}");
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let text = r#"
        [breaker]
        failurs = 3
        open = "8 parsecs"
        [brakes]
        on = true
        [targets.mine]
        url = "ftp://example.com/v1"
        model = 7
        [failover]
        sends = 0
        [routes]
        x = "nowhere"
        y = 5
    "#;
    let error = Config::from_toml(text).unwrap_err();
    let found: Vec<_> = error.findings().iter().map(ToString::to_string).collect();
    for (line, says) in found.iter().zip([
        "line 3: unknown field `failurs`",
        "line 4: \"8 parsecs\" must be a duration",
        "line 5: unknown field `brakes`",
        "line 8: targets.mine.url must be an https address",
        "line 9: invalid type: integer `7`",
        "line 11: failover.sends must be at least 1",
        "line 13: routes.x must name targets or chains",
        "line 14: invalid type: integer `5`, expected the name of a chain",
    ]) {
        assert!(line.starts_with(says), "{line} is not {says}");
    }
    assert_eq!(found.len(), 8, "{found:#?}");
    let broken = Config::from_toml("a = = 1\nb = 2\nc = [").unwrap_err();
    let lines: Vec<_> = broken.findings().iter().map(|f| f.line()).collect();
    assert_eq!(
        (lines.first(), lines.last()),
        (Some(&Some(1)), Some(&Some(3))),
        "{broken}"
    );
}

#[test]
fn chains_and_routes_that_lead_nowhere_are_refused() {
    for (text, says) in [
        (
            "[chains]\na = [\"b\"]\nb = [\"opus\", \"a\"]",
            "line 2: chains.a must not lead to itself: b -> a -> b",
        ),
        (
            "[chains]\na = [\"a\"]\n[routes]\nx = \"a\"",
            "line 2: chains.a must not lead to itself: a -> a",
        ),
        (
            "[chains]\nopus = [\"gemini\"]",
            "line 2: chains.opus must not have the name of a target",
        ),
        (
            "[routes]\nx = []",
            "line 2: routes.x must name at least one target",
        ),
        (
            "[targets.opus]\nenabled = false\n[chains]\ndefault = [\"opus\"]",
            "line 4: chains.default must have a target that is enabled",
        ),
        (
            "[targets.again]\nurl = \"https://api.anthropic.com/v1/chat/completions\"\n\
             model = \"claude-opus-5\"\nkey_env = \"ANTHROPIC_API_KEY\"",
            "line 1: targets.opus must not be [targets.again] again, the same model",
        ),
    ] {
        let said = wrong(text);
        assert!(said.starts_with(says), "{text:?}: {said}");
    }
    // What only leads to a wrong chain is not wrong.
    for (text, says) in [
        (
            "[chains]\ndefault = [\"opsu\", \"gemini\", \"gimini\"]",
            "line 2: chains.default must name targets or chains; there is neither [targets.opsu] \
             nor chains.opsu; line 2: chains.default must name targets or chains; there is neither \
             [targets.gimini] nor chains.gimini",
        ),
        (
            "[chains]\na = [\"a\"]\nb = [\"a\"]\n[routes]\nx = \"b\"",
            "line 2: chains.a must not lead to itself: a -> a",
        ),
    ] {
        assert_eq!(wrong(text), says);
    }
    let nested = Config::from_toml("[chains]\na = [\"gemini\", \"default\"]").unwrap();
    assert_eq!(nested.targets_of("a").unwrap(), ["gemini", "opus"]);
}

#[test]
fn secrets_and_headers_of_the_stack_are_refused_in_a_target() {
    for (setting, says) in [
        (
            "headers = { api-key = \"hunter2\" }",
            "line 2: targets.opus.headers.api-key must be in a variable",
        ),
        (
            "headers = { x-auth-token = \"hunter2\" }",
            "line 2: targets.opus.headers.x-auth-token must be in",
        ),
        (
            "headers = { host = \"x\" }",
            "line 2: targets.opus.headers.host must be the name of a header that",
        ),
        (
            "headers = { x = { var = \"X\" } }",
            "line 2: unknown field `var`, expected `env` or `file`",
        ),
        (
            "headers = { x = { env = \"sk-1\" } }",
            "line 2: targets.opus.headers.x must be the name of a variable",
        ),
        (
            "auth_header = \"content-length\"",
            "line 2: targets.opus.auth_header must be",
        ),
        (
            "query = { key = \"hunter2\" }",
            "line 2: targets.opus.query must not hold a key",
        ),
        (
            "key_file = \"/run/key\"",
            "line 2: targets.opus.key_file must not be set beside key_env",
        ),
    ] {
        let said = wrong(&format!("[targets.opus]\n{setting}"));
        assert!(said.starts_with(says), "{setting}: {said}");
        assert!(!said.contains("hunter2"));
    }
}

#[test]
fn what_is_hardly_meant_is_a_warning() {
    let warnings = |text: &str| {
        let (_, warnings) = Config::with_warnings(Profile::Interactive, text).unwrap();
        let lines = warnings.iter().map(ToString::to_string);
        lines.collect::<Vec<_>>().join("; ")
    };
    assert_eq!(warnings(""), "");
    assert_eq!(warnings("profile = \"batch\""), "");
    const LOCAL: &str =
        "[targets.local]\nurl = \"https://llm.example.com/v1\"\nmodel = \"llama\"\n";
    assert_eq!(
        warnings(LOCAL),
        "line 1: targets.local is in no chain and no route: it is never asked"
    );
    assert_eq!(
        warnings(&format!("{LOCAL}[routes]\nx = \"local\"\n")),
        "line 1: targets.local has no price: [prices.models.\"llama\"] would tell what its answers \
         cost; line 1: targets.local has no key_env: it is asked without a key; \
         line 5: routes.x may not get to its end: 4 attempts x 1m at local = 4m, \
         beyond call.plain_deadline = 3m"
    );
    assert_eq!(
        warnings("[targets.opus]\nenabled = false\n[routes]\nx = [\"opus\"]"),
        "line 4: routes.x leads to no target that is enabled: calls get no answer"
    );
    assert_eq!(
        warnings("[failover]\nenabled = false"),
        "chains.default has more targets than opus, which failover.enabled = false leaves out"
    );
}

#[test]
fn a_key_in_the_place_of_a_variable_is_refused_and_not_shown() {
    let said = wrong("[targets.opus]\nkey_env = \"sk-ant-api03-secret\"");
    assert_eq!(
        said,
        "line 2: targets.opus.key_env must be the name of a variable, not a key"
    );
}

#[test]
fn an_address_with_a_secret_in_it_is_refused_and_not_shown() {
    for url in [
        "https://me:hunter2@example.com/v1/chat/completions",
        "https://example.com/v1/chat/completions?api-version=1&Key=hunter2",
    ] {
        let said = wrong(&format!("[targets.opus]\nurl = \"{url}\""));
        assert!(
            said.starts_with("line 2: targets.opus.url must not hold"),
            "{said}"
        );
        assert!(!said.contains("hunter2"));
        let built = Pipeline::builder()
            .target(Upstream::opus("k").url(url))
            .build();
        assert!(!built.unwrap_err().to_string().contains("hunter2"));
    }
    let azure = "https://example.com/v1/chat/completions?api-version=2024-10-21";
    assert!(Config::from_toml(&format!("[targets.opus]\nurl = \"{azure}\"")).is_ok());
}

#[test]
fn a_pipeline_wants_the_keys_of_its_chain_only() {
    let text = "[chains]\nsolo = [\"gemini\"]";
    let config = Config::from_toml(text).unwrap();
    let key = |name: &str| (name == "GEMINI_API_KEY").then(|| "k".into());
    assert!(Pipeline::from_config(&config, "solo", key).is_ok());
    let missing = Pipeline::from_config(&config, "default", key).unwrap_err();
    assert!(matches!(missing, BuildError::MissingKey { .. }));
    assert_eq!(
        missing.to_string(),
        "ANTHROPIC_API_KEY is not set: it holds the key of target opus"
    );
    let none = Pipeline::from_config(&config, "slow", key).unwrap_err();
    assert!(none.to_string().contains("slow"));
}

#[test]
fn every_policy_can_be_turned_off() {
    let mut text = String::new();
    for policy in [
        "idempotency_key",
        "budget",
        "failover",
        "backoff",
        "retry_after",
        "breaker",
        "verdict",
        "in_flight",
        "attempt_timeout",
    ] {
        text.push_str(&format!("[{policy}]\nenabled = false\n"));
    }
    let config = Config::from_toml(&text).unwrap();
    let pipeline = Pipeline::from_config(&config, "default", |_| Some("k".into()));
    let pipeline = pipeline.unwrap().build().unwrap();
    assert!(pipeline.breakers().is_empty() && pipeline.budget().is_none());
}
