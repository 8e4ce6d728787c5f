//! Many calls while both vendors misbehave at random: each call gets one outcome, and the records
//! and the vendors' logs agree attempt by attempt.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use opus_to_gemini::{
    chat::{Asked, Chat, ask},
    config::{BreakerKind, Config, RetryAfterKind},
    fake::{Behaviour, Did, FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, FakeVendor, Fakes, KeyLabel},
    pipeline::{Pipeline, Upstream},
};
use tokio::{sync::Semaphore, task::JoinSet};
use tower_spillway_core::{Chance, Class};

const CALLS: usize = 1_000;
const IN_FLIGHT: usize = 50;

/// Far above what an answer takes, even on a slow machine: only what hangs runs into it.
const LIMIT: Duration = Duration::from_secs(3);

fn misbehave(vendor: &FakeVendor, chance: &Chance) {
    let retry_after = Duration::from_millis(100);
    for _ in 0..4 * CALLS {
        vendor.next(
            1,
            match chance.up_to(199) {
                0..20 => Behaviour::Throttle { retry_after },
                20..40 => Behaviour::Fail { status: 500 },
                40..60 => Behaviour::Fail { status: 529 },
                60..70 => Behaviour::Reset,
                70..80 => Behaviour::Cut,
                80 => Behaviour::Hang,
                _ => Behaviour::Answer,
            },
        );
    }
}

/// Attempt by attempt: the status of a whole answer, or none.
type Attempts = BTreeMap<String, Option<u16>>;

fn recorded(calls: &BTreeMap<usize, Asked>) -> Attempts {
    let mut all = Attempts::new();
    for (call, asked) in calls {
        let mut numbers: BTreeMap<&str, u32> = BTreeMap::new();
        for attempt in &asked.report.attempts {
            if attempt.class == Class::Refused {
                continue;
            }
            let target = attempt.target.as_ref().unwrap().as_str();
            let number = numbers.entry(target).or_default();
            *number += 1;
            let id = format!("{call}/{target}/{number}");
            assert_eq!(all.insert(id, attempt.status), None);
        }
    }
    all
}

fn logged(fakes: &Fakes) -> Attempts {
    let mut all = Attempts::new();
    for (vendor, label) in [(&fakes.anthropic, "anthropic"), (&fakes.gemini, "gemini")] {
        for entry in vendor.log() {
            assert_eq!(entry.key, KeyLabel::Own(label.into()));
            let status = match entry.did {
                Did::Answered(status) => Some(status),
                _ => None,
            };
            let id = entry.id.unwrap();
            assert_eq!(all.insert(id.clone(), status), None, "{id} arrived twice");
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_get_one_outcome_each_and_all_records_agree() {
    let chance = Chance::seeded(11);
    let fakes = Fakes::start(&chance).await.unwrap();
    misbehave(&fakes.anthropic, &chance);
    misbehave(&fakes.gemini, &chance);
    let mut config = Config::interactive().at_speed(100);
    config.call.plain_deadline = Some(LIMIT * 10);
    // So that calls are retried and hop: while both breakers are open, or both targets held,
    // callers in a loop would spend a thousand calls on refusals.
    config.retry_after.kind = RetryAfterKind::PerCall;
    config.breaker.kind = BreakerKind::Consecutive;
    (config.breaker.failures, config.budget.percent) = (100, 100);
    let pipeline = Pipeline::builder()
        .target(
            Upstream::opus(FAKE_ANTHROPIC_KEY)
                .url(fakes.anthropic.url())
                .within(LIMIT, LIMIT),
        )
        .target(
            Upstream::gemini(FAKE_GEMINI_KEY)
                .url(fakes.gemini.url())
                .within(LIMIT, LIMIT),
        )
        .config(config)
        .chance(chance)
        .build()
        .unwrap();

    let slots = Arc::new(Semaphore::new(IN_FLIGHT));
    let mut calls = JoinSet::new();
    for number in 0..CALLS {
        let slot = Arc::clone(&slots).acquire_owned().await.unwrap();
        let pipeline = pipeline.clone();
        calls.spawn(async move {
            let _slot = slot;
            let chat = Chat::new("hi").id(number.to_string());
            (number, ask(&pipeline, &chat).await)
        });
    }
    let calls: BTreeMap<usize, Asked> = calls.join_all().await.into_iter().collect();

    assert_eq!(calls.len(), CALLS);
    let answered = calls.values().filter(|asked| asked.answer.is_ok()).count();
    assert!(answered > CALLS * 9 / 10, "{answered} answered");
    let (recorded, logged) = (recorded(&calls), logged(&fakes));
    assert!(recorded.len() > CALLS * 11 / 10, "{} sent", recorded.len());
    let differ = |id: &&String| recorded.get(*id) != logged.get(*id);
    let ids: Vec<_> = recorded
        .keys()
        .chain(logged.keys())
        .filter(differ)
        .collect();
    assert!(ids.is_empty(), "records and logs differ at {ids:?}");
}
