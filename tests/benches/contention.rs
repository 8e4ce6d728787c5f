//! Many callers on one breaker: throughput of two threads against one, and the tail of refusals.
//!
//! Run with `cargo bench -p spillway-benches --bench contention`.

#![allow(clippy::unwrap_used, missing_docs, reason = "a bench may")]

use std::{
    future::{Future, Ready, ready},
    hint::black_box,
    io,
    pin::pin,
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use tower::{Service, ServiceBuilder, service_fn};
use tower_spillway::{
    circuit_breaker::CircuitBreakerLayer,
    core::{Carried, Class, Failure, Plain},
    prelude::BoxError,
};

/// Enough that the scheduler's slices do not show.
const RUN: Duration = Duration::from_millis(600);
const ROUNDS: usize = 7;

fn classify(out: Result<&u64, Failure<'_>>) -> Class {
    match out {
        Ok(_) => Class::Success,
        Err(_) => Class::Transient,
    }
}

fn call<S, R>(service: &mut S, request: R) -> Result<S::Response, S::Error>
where
    S: Service<R>,
{
    let mut cx = Context::from_waker(Waker::noop());
    while service.poll_ready(&mut cx).is_pending() {}
    let mut future = pin!(service.call(request));
    loop {
        if let Poll::Ready(out) = future.as_mut().poll(&mut cx) {
            return out;
        }
    }
}

/// Calls a second that `threads` threads make on clones of one service.
fn throughput<S, R>(service: &S, threads: usize, request: fn() -> R) -> f64
where
    S: Service<R> + Clone + Send + 'static,
    R: 'static,
{
    let (done, total) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let barrier = Arc::new(Barrier::new(threads + 1));
    let workers: Vec<_> = (0..threads)
        .map(|_| {
            let mut service = service.clone();
            let (done, total, barrier) = (done.clone(), total.clone(), barrier.clone());
            thread::spawn(move || {
                let mut calls = 0;
                barrier.wait();
                while !done.load(Ordering::Relaxed) {
                    for _ in 0..64 {
                        let _ = black_box(call(&mut service, request()));
                        calls += 1;
                    }
                }
                total.fetch_add(calls, Ordering::Relaxed);
            })
        })
        .collect();
    barrier.wait();
    #[expect(clippy::disallowed_methods, reason = "the bench's own pace")]
    thread::sleep(RUN);
    done.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.join().unwrap();
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let calls = total.load(Ordering::Relaxed) as f64;
    calls / RUN.as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Two threads over one, the two measured in turn.
fn scaling<S, R>(name: &str, service: &S, request: fn() -> R)
where
    S: Service<R> + Clone + Send + 'static,
    R: 'static,
{
    let (mut one, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let alone = throughput(service, 1, request);
        one.push(alone);
        ratios.push(throughput(service, 2, request) / alone);
    }
    let (one, ratio) = (median(one), median(ratios));
    println!(
        "{name:<28} {:>9.2} M calls/s alone, two threads {ratio:>5.2} of it",
        one / 1e6
    );
}

fn echo(n: u64) -> Ready<Result<u64, io::Error>> {
    ready(Ok(n))
}

fn echo_carried(request: Carried<u64>) -> Ready<Result<u64, BoxError>> {
    ready(Ok(request.into_inner()))
}

/// The times of refusals while 64 tasks ask an open breaker, in nanoseconds.
fn refusals<S, R>(name: &str, service: &S, request: fn() -> R)
where
    S: Service<R> + Clone + Send + 'static,
    S::Future: Send,
    R: Send + 'static,
{
    const TASKS: usize = 64;
    const EACH: usize = 2_000;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let mut times: Vec<u128> = runtime.block_on(async {
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| {
                let mut service = service.clone();
                tokio::spawn(async move {
                    let mut times = Vec::with_capacity(EACH);
                    for _ in 0..EACH {
                        let start = tokio::time::Instant::now();
                        let ready = std::future::poll_fn(|cx| service.poll_ready(cx))
                            .await
                            .is_ok();
                        assert!(ready);
                        let _ = black_box(service.call(request()).await);
                        times.push(start.elapsed().as_nanos());
                        tokio::task::yield_now().await;
                    }
                    times
                })
            })
            .collect();
        let mut all = Vec::new();
        for task in tasks {
            all.extend(task.await.unwrap());
        }
        all
    });
    times.sort_unstable();
    let at = |permille: usize| {
        times
            .get(times.len() * permille / 1000)
            .copied()
            .unwrap_or(0)
    };
    let (p50, p999) = (at(500), at(999));
    println!(
        "{name:<28} p50 {p50:>6} ns, p99.9 {p999:>9} ns, {:>7} times",
        p999 / p50.max(1)
    );
}

fn main() {
    println!("one breaker, closed, calls that succeed");
    let ours = CircuitBreakerLayer::new().adapter(Plain(classify));
    let spillway = ServiceBuilder::new()
        .layer(ours.clone())
        .service(service_fn(echo_carried));
    scaling("spillway", &spillway, || Carried::new(7));
    let theirs = ServiceBuilder::new()
        .layer(
            tower_resilience_circuitbreaker::CircuitBreakerLayer::builder()
                .failure_rate_threshold(0.5)
                .sliding_window_size(100)
                .build()
                .unwrap(),
        )
        .service(service_fn(echo));
    scaling("tower-resilience", &theirs, || 7);

    println!("\none breaker, open, 64 tasks that are refused");
    ours.unnamed_breaker().force_open();
    refusals("spillway", &spillway, || Carried::new(7));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(theirs.force_open());
    refusals("tower-resilience", &theirs, || 7);
}
