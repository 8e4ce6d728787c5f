//! The soak in short: random faults at both vendors, and every caller of the gateway gets a whole
//! answer or one clear error. The long one is `cargo bench -p opus-to-gemini --bench soak`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]

#[path = "../benches/support/mod.rs"]
mod support;

use self::support::{
    soak::{Plan, soak},
    verdict::Got,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_random_faults_no_call_is_lost_and_no_descriptor_left_open() {
    let soaked = soak(Plan {
        calls: 2_000,
        in_flight: 50,
        faults: 10,
        seed: 7,
    })
    .await
    .unwrap();
    println!("{soaked:#?}");
    let of = |is: fn(&Got) -> bool| {
        let counts = soaked.counts.iter().filter(|(got, _)| is(got));
        counts.map(|(_, count)| count).sum::<usize>()
    };
    assert_eq!(of(|got| matches!(got, Got::Lost(_))), 0);
    // Of every kind there are some, or nothing was tried.
    assert!(of(|got| matches!(got, Got::Whole(model) if model == "claude-opus-5")) > 500);
    assert!(of(|got| matches!(got, Got::Whole(model) if model == "gemini-2.5-pro")) > 0);
    assert!(of(|got| matches!(got, Got::Error(200, _))) > 0);
    assert!(of(|got| matches!(got, Got::Left)) > 0);
    let [start, _, end] = soaked.descriptors;
    assert!(end <= start);
}
