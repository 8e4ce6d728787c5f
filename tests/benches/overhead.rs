//! What a clean call costs, side by side with the nearest peers in one process.
//!
//! Run with `cargo bench -p spillway-benches --bench overhead`. The last lines are ratios of medians
//! of this run; single times depend on the machine.
//!
//! Both sides are called alike (ready, called, polled once, by the same function), built alike, and
//! answered at once. A request is made inside the measured part on both sides.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a bench may"
)]

use std::{
    fs,
    future::{Future, Ready, ready},
    hint::black_box,
    io,
    path::Path,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use criterion::{BenchmarkGroup, Criterion, measurement::WallTime};
use tower::{
    Service, ServiceBuilder,
    retry::budget::{Budget, TpsBudget},
    service_fn,
};
use tower_spillway::{
    circuit_breaker::{BreakerConfig, Rule},
    core::{
        Failure, clock,
        gate::{Ask, Settled},
    },
    prelude::*,
    retry_budget::RatioConfig,
};

type Peer = tower_resilience_fallback::FallbackError<
    tower_resilience_circuitbreaker::CircuitBreakerError<io::Error>,
>;

fn classify(out: Result<&u64, Failure<'_>>) -> Class {
    match out {
        Ok(_) => Class::Success,
        Err(_) => Class::Transient,
    }
}

fn echo(n: u64) -> Ready<Result<u64, io::Error>> {
    ready(Ok(n))
}

fn echo_carried(request: Carried<u64>) -> Ready<Result<u64, BoxError>> {
    ready(Ok(request.into_inner()))
}

/// Runs a future that needs no waiting.
fn now_or_never<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(out) = future.as_mut().poll(&mut cx) {
            return out;
        }
    }
}

fn call<S, R>(service: &mut S, request: R) -> S::Response
where
    S: Service<R>,
    S::Error: std::fmt::Debug,
{
    let mut cx = Context::from_waker(Waker::noop());
    while service.poll_ready(&mut cx).is_pending() {}
    now_or_never(service.call(request)).unwrap()
}

fn bench<S, R>(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    mut service: S,
    request: impl Fn() -> R,
) where
    S: Service<R>,
    S::Error: std::fmt::Debug,
{
    group.bench_function(name, |b| {
        b.iter(|| black_box(call(&mut service, black_box(request()))));
    });
}

fn breakers(c: &mut Criterion) {
    let mut group = c.benchmark_group("breaker");
    let plain = Plain(classify);
    bench(
        &mut group,
        "spillway",
        ServiceBuilder::new()
            .layer(CircuitBreakerLayer::new().adapter(plain))
            .service(service_fn(echo_carried)),
        || Carried::new(7),
    );
    // The rule of the peer, which looks back on calls and on no time.
    let same_rule = BreakerConfig::new().rules([Rule::rate_of_last(0.5, 100, 100)]);
    bench(
        &mut group,
        "spillway, same rule",
        ServiceBuilder::new()
            .layer(
                CircuitBreakerLayer::with_config(same_rule)
                    .unwrap()
                    .adapter(plain),
            )
            .service(service_fn(echo_carried)),
        || Carried::new(7),
    );
    bench(
        &mut group,
        "tower-resilience",
        ServiceBuilder::new()
            .layer(
                tower_resilience_circuitbreaker::CircuitBreakerLayer::builder()
                    .failure_rate_threshold(0.5)
                    .sliding_window_size(100)
                    .build()
                    .unwrap(),
            )
            .service(service_fn(echo)),
        || 7,
    );
    let failsafe = failsafe::Config::new().build();
    group.bench_function("failsafe", |b| {
        use failsafe::futures::CircuitBreaker as _;
        b.iter(|| now_or_never(failsafe.call(echo(black_box(7)))).unwrap());
    });
    let recloser = recloser::AsyncRecloser::from(recloser::Recloser::custom().build());
    group.bench_function("recloser", |b| {
        b.iter(|| now_or_never(recloser.call(echo(black_box(7)))).unwrap());
    });
    group.finish();
}

/// tower's retry with its budget: what its documentation shows.
#[derive(Clone)]
struct TowerPolicy(Arc<TpsBudget>);

impl tower::retry::Policy<u64, u64, io::Error> for TowerPolicy {
    type Future = Ready<()>;

    fn retry(&mut self, _: &mut u64, result: &mut Result<u64, io::Error>) -> Option<Self::Future> {
        match result {
            Ok(_) => {
                self.0.deposit();
                None
            }
            Err(_) => self.0.withdraw().then(|| ready(())),
        }
    }

    fn clone_request(&mut self, request: &u64) -> Option<u64> {
        Some(*request)
    }
}

fn tps() -> TpsBudget {
    TpsBudget::new(Duration::from_secs(10), 1, 0.2)
}

fn retries(c: &mut Criterion) {
    let mut group = c.benchmark_group("retry and budget");
    let plain = Plain(classify);
    bench(
        &mut group,
        "spillway",
        ServiceBuilder::new()
            .layer(
                RetryBudgetLayer::ratio(RatioConfig::new())
                    .unwrap()
                    .adapter(plain),
            )
            .layer(JitterBackoffLayer::new().adapter(plain))
            .service(service_fn(echo_carried)),
        || Carried::new(7),
    );
    bench(
        &mut group,
        "tower",
        ServiceBuilder::new()
            .layer(tower::retry::RetryLayer::new(TowerPolicy(Arc::new(tps()))))
            .service(service_fn(echo)),
        || 7,
    );
    group.finish();
}

/// A first attempt that failed, and its retry: one deposit, one withdrawal. Ours are told the time;
/// the engine reads it once, at the end of the attempt, and so does this. tower's reads it in each.
fn budgets(c: &mut Criterion) {
    let mut group = c.benchmark_group("budget");
    let ours = RatioConfig::new().build().unwrap().as_gate();
    group.bench_function("spillway", |b| {
        b.iter(|| {
            let now = clock::now();
            ours.first_end(Class::Transient, now);
            ours.attempt_end(Class::Transient, now);
            if let Some(receipt) = ours.withdraw(&Ask::retry(Class::Transient, now)) {
                ours.settle(receipt, Settled::Sent(Class::Success));
            }
        });
    });
    let theirs = tps();
    group.bench_function("tower", |b| {
        b.iter(|| {
            theirs.deposit();
            black_box(theirs.withdraw());
        });
    });
    group.finish();
}

fn stacks(c: &mut Criterion) {
    let mut group = c.benchmark_group("stack");
    let plain = Plain(classify);
    let target = ServiceBuilder::new()
        .layer(JitterBackoffLayer::new().adapter(plain))
        .layer(CircuitBreakerLayer::new().adapter(plain))
        .service(service_fn(echo_carried));
    let failover = FailoverService::new([
        Target::new("one", target.clone()),
        Target::new("two", target.clone()),
    ]);
    let ours = ServiceBuilder::new()
        .layer(
            RetryBudgetLayer::ratio(RatioConfig::new())
                .unwrap()
                .adapter(plain),
        )
        .service(failover.unwrap().adapter(plain));
    bench(&mut group, "spillway", ours, || Carried::new(7));

    let budget = tower_resilience_retry::RetryBudgetBuilder::new()
        .token_bucket()
        .build()
        .unwrap();
    let theirs = ServiceBuilder::new()
        .layer(tower_resilience_fallback::FallbackLayer::<u64, u64, _>::value(0))
        .layer(
            tower_resilience_retry::RetryLayer::<u64, u64, _>::builder()
                .max_attempts(3)
                .exponential_backoff(Duration::from_millis(100))
                .budget(budget)
                .build(),
        )
        .layer(
            tower_resilience_circuitbreaker::CircuitBreakerLayer::builder()
                .failure_rate_threshold(0.5)
                .sliding_window_size(100)
                .build()
                .unwrap(),
        )
        .service(service_fn(echo));
    let _: fn(Peer) = drop;
    bench(&mut group, "tower-resilience", theirs, || 7);

    let everything = ServiceBuilder::new()
        .layer(JitterBackoffLayer::new().adapter(plain))
        .layer(RetryAfterLayer::new().adapter(plain))
        .layer(CircuitBreakerLayer::new().adapter(plain))
        .layer(AttemptTimeoutLayer::to_head(Duration::from_secs(8)).adapter(plain))
        .service(service_fn(echo_carried));
    let failover = FailoverService::new([
        Target::new("one", everything.clone()),
        Target::new("two", everything),
    ]);
    let everything = ServiceBuilder::new()
        .layer(
            CallLayer::new()
                .deadline(Duration::from_secs(60))
                .adapter(plain),
        )
        .layer(
            RetryBudgetLayer::ratio(RatioConfig::new())
                .unwrap()
                .adapter(plain),
        )
        .service(failover.unwrap().adapter(plain));
    bench(&mut group, "spillway, every layer", everything, || {
        Carried::new(7)
    });
    group.finish();
}

/// The median of a bench of this run, in nanoseconds.
fn median(folder: &Path, group: &str, name: &str) -> f64 {
    let safe = |s: &str| s.replace(['?', '"', '/', '\\', '*', '<', '>', ':', '|', '^'], "_");
    let file = folder
        .join(safe(group))
        .join(safe(name))
        .join("new/estimates.json");
    let text = fs::read_to_string(&file).unwrap_or_default();
    let estimates: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    estimates["median"]["point_estimate"]
        .as_f64()
        .unwrap_or(f64::NAN)
}

fn main() {
    // Timers need a runtime around them, though none fires here.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let _inside = runtime.enter();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("overhead");
    let mut criterion = Criterion::default()
        .output_directory(&folder)
        .sample_size(60)
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(3))
        .configure_from_args();
    breakers(&mut criterion);
    retries(&mut criterion);
    budgets(&mut criterion);
    stacks(&mut criterion);
    criterion.final_summary();

    println!(
        "\n{:<18} {:<24} {:>9}   spillway's time over it, of each of its rows",
        "group", "", "median"
    );
    for (group, names) in [
        (
            "breaker",
            &[
                "spillway",
                "spillway, same rule",
                "tower-resilience",
                "failsafe",
                "recloser",
            ][..],
        ),
        ("retry and budget", &["spillway", "tower"]),
        ("budget", &["spillway", "tower"]),
        (
            "stack",
            &["spillway", "spillway, every layer", "tower-resilience"],
        ),
    ] {
        let ours: Vec<f64> = names
            .iter()
            .filter(|name| name.starts_with("spillway"))
            .map(|name| median(&folder, group, name))
            .collect();
        for name in names {
            let time = median(&folder, group, name);
            let ratios: String = ours.iter().map(|t| format!("{:>8.2}", t / time)).collect();
            println!("{group:<18} {name:<24} {time:>6.0} ns{ratios}");
        }
    }
}
