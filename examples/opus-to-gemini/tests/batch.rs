//! A file of prompts through an outage, and through kills.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may")]
#![allow(clippy::disallowed_methods, reason = "no runtime waits for a child")]

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use opus_to_gemini::{
    batch::{Item, Journal, JournalError, Outcome, Progress, Summary, items, run},
    config::Config,
    fake::{Behaviour, FAKE_ANTHROPIC_KEY, FAKE_GEMINI_KEY, Fakes},
    pipeline::{Pipeline, Upstream},
};
use serde_json::Value;
use tower_spillway_core::Chance;

const SPEED: u32 = 100;

async fn stack() -> (Fakes, Pipeline, Config) {
    let chance = Chance::seeded(5);
    let fakes = Fakes::start(&chance).await.unwrap();
    let config = Config::batch().at_speed(SPEED);
    let gemini = config.targets["gemini"].clone();
    let opus = config.targets["opus"].clone();
    // Attempts end in time even on a slow machine: no vendor hangs here.
    let within = Duration::from_secs(10);
    let pipeline = Pipeline::builder()
        .config(config.clone())
        .chance(chance)
        .target(
            Upstream::new("opus", opus, FAKE_ANTHROPIC_KEY)
                .url(fakes.anthropic.url())
                .within(within, within),
        )
        .target(
            Upstream::new("gemini", gemini, FAKE_GEMINI_KEY)
                .url(fakes.gemini.url())
                .within(within, within),
        )
        .build()
        .unwrap();
    (fakes, pipeline, config)
}

fn prompts(n: usize) -> Vec<Item> {
    items(
        &(1..=n)
            .map(|n| format!("\"prompt {n}\"\n"))
            .collect::<String>(),
    )
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

#[derive(Default)]
struct Counts {
    done: usize,
    paused: usize,
    back: usize,
    at: BTreeMap<usize, Box<dyn FnOnce() + Send>>,
}

impl Progress for Counts {
    fn done(&mut self, _: &Outcome) {
        self.done += 1;
        if let Some(event) = self.at.remove(&self.done) {
            event();
        }
    }

    fn back(&mut self) {
        self.back += 1;
    }

    fn paused(&mut self, _: Duration) {
        self.paused += 1;
    }
}

async fn work(
    pipeline: &Pipeline,
    config: &Config,
    items: &[Item],
    out: &Path,
    counts: &mut Counts,
) -> Summary {
    let mut journal = Journal::create(out).unwrap();
    let prices = config.prices.table().unwrap();
    let never = std::future::pending();
    let batch = &config.batch;
    let summary = run(pipeline, batch, &prices, items, &mut journal, counts, never).await;
    journal.finish(items).unwrap();
    summary.unwrap()
}

fn figures(summary: Summary) -> (usize, usize, usize) {
    (summary.ok, summary.fail, summary.left)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_vendors_down_for_a_minute_costs_no_item() {
    for down in [
        Behaviour::Fail { status: 503 },
        Behaviour::Reset,
        Behaviour::Throttle {
            retry_after: Duration::from_secs(1),
        },
    ] {
        let (fakes, pipeline, config) = stack().await;
        let fakes = std::sync::Arc::new(fakes);
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("out.jsonl");
        let items = prompts(500);
        let mut counts = Counts::default();
        let both = std::sync::Arc::clone(&fakes);
        let outage = move || {
            both.anthropic.set(down);
            both.gemini.set(down);
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(60) / SPEED).await;
                both.anthropic.set(Behaviour::Answer);
                both.gemini.set(Behaviour::Answer);
            });
        };
        counts.at.insert(200, Box::new(outage));

        let summary = work(&pipeline, &config, &items, &out, &mut counts).await;

        assert_eq!(figures(summary), (500, 0, 0), "{down:?}");
        assert!(counts.back > 0, "the outage was not felt");
        let written = lines(&out);
        let order: Vec<u64> = written
            .iter()
            .map(|l| l["line"].as_u64().unwrap())
            .collect();
        assert_eq!(order, (1..=500).collect::<Vec<_>>());
        for line in &written {
            let said = line["answer"].as_str().unwrap();
            assert!(
                said.ends_with(&format!("prompt {}", line["line"])),
                "{said}"
            );
            assert_eq!(line["error"], Value::Null);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_does_it_where_few_are_left_to_find_out_that_it_is_over() {
    let (fakes, pipeline, config) = stack().await;
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.jsonl");
    let items = prompts(3);
    for vendor in [&fakes.anthropic, &fakes.gemini] {
        vendor.set(Behaviour::Fail { status: 503 });
    }
    let over = async {
        tokio::time::sleep(Duration::from_secs(60) / SPEED).await;
        fakes.anthropic.set(Behaviour::Answer);
        fakes.gemini.set(Behaviour::Answer);
    };
    let mut counts = Counts::default();
    let work = work(&pipeline, &config, &items, &out, &mut counts);
    let (summary, ()) = tokio::join!(work, over);
    assert_eq!(figures(summary), (3, 0, 0));
    assert!(counts.paused > 0, "everybody refused for a while");
}

#[tokio::test]
async fn what_fails_is_told_and_stops_nothing() {
    let (fakes, pipeline, config) = stack().await;
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.jsonl");
    let text = concat!(
        "\"one\"\n",
        "nonsense\n",
        "{\"id\": \"bad\", \"messages\": [{\"role\": \"stranger\", \"content\": \"x\"}]}\n",
        "{\"custom_id\": \"c\", \"body\": {\"messages\": [{\"role\": \"user\", \"content\": \"x\"}]}}\n",
    );
    let items = items(text);
    let summary = work(&pipeline, &config, &items, &out, &mut Counts::default()).await;
    assert_eq!(figures(summary), (2, 2, 0));
    let written = lines(&out);
    assert_eq!(written[1]["error"]["class"], "caller_fault");
    let bad = &written[2];
    assert_eq!(
        (&bad["id"], &bad["error"]["status"]),
        (&"bad".into(), &400.into())
    );
    assert!(
        bad["error"]["message"].as_str().unwrap().contains("role"),
        "{bad}"
    );
    assert_eq!(written[3]["custom_id"], "c");
    assert!(written[3]["response"]["body"]["choices"].is_array());
    assert!(written[0]["tokens"]["output"].is_u64() && written[0]["cost"].is_f64());
    // Wrong for good: sent to nobody twice.
    assert_eq!(fakes.anthropic.log().len() + fakes.gemini.log().len(), 3);
}

#[tokio::test]
async fn an_item_goes_back_only_so_often() {
    let (fakes, pipeline, mut config) = stack().await;
    config.batch.max_requeues = 2;
    fakes.anthropic.set(Behaviour::Fail { status: 500 });
    fakes.gemini.set(Behaviour::Fail { status: 500 });
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.jsonl");
    let summary = work(
        &pipeline,
        &config,
        &prompts(1),
        &out,
        &mut Counts::default(),
    )
    .await;
    assert_eq!(figures(summary), (0, 1, 0));
    let line = &lines(&out)[0];
    assert_eq!(line["requeues"], 2);

    // Until a time instead of so often.
    config.batch.give_up_after = Some(Duration::from_secs(2));
    let out = dir.path().join("later.jsonl");
    let summary = work(
        &pipeline,
        &config,
        &prompts(1),
        &out,
        &mut Counts::default(),
    )
    .await;
    assert_eq!(figures(summary), (0, 1, 0));
    let line = &lines(&out)[0];
    assert!(line["requeues"].as_u64().unwrap() > 2, "{line}");
}

#[tokio::test]
async fn keys_stay_the_same_over_requeues() {
    let (fakes, pipeline, config) = stack().await;
    // So many open both breakers.
    fakes.anthropic.next(5, Behaviour::Fail { status: 500 });
    fakes.gemini.next(3, Behaviour::Fail { status: 500 });
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.jsonl");
    let mut counts = Counts::default();
    let summary = work(&pipeline, &config, &prompts(1), &out, &mut counts).await;
    assert_eq!((figures(summary), counts.back > 0), ((1, 0, 0), true));
    let keys: Vec<_> = [&fakes.anthropic, &fakes.gemini]
        .into_iter()
        .flat_map(opus_to_gemini::fake::FakeVendor::log)
        .map(|entry| entry.idempotency_key.unwrap())
        .collect();
    assert!(keys.len() > 2);
    assert!(keys.iter().all(|key| *key == prompts(1)[0].key), "{keys:?}");
}

#[test]
fn an_output_that_is_there_is_not_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.jsonl");
    drop(Journal::create(&out).unwrap());
    let error = Journal::create(&out).unwrap_err();
    assert!(matches!(error, JournalError::IsThere(_)));
    assert!(error.to_string().contains("--resume"), "{error}");
}

fn batch(input: &Path, out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_opus-to-gemini"));
    command
        .env_remove("ANTHROPIC_API_KEY")
        .env_remove("GEMINI_API_KEY")
        .args([
            "batch",
            "--fake",
            "--fake-latency",
            "20ms",
            "--concurrency",
            "4",
        ])
        .args(more)
        .arg("--out")
        .arg(out)
        .arg(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

#[test]
fn a_file_that_is_no_result_is_never_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("in.jsonl"), dir.path().join("out"));
    fs::write(&input, "\"a\"\n").unwrap();
    let mine = "my diary\n";
    for name in ["out", "out.part", "out.sorted", "out.lock"] {
        for (more, text) in [
            (&[][..], mine),
            (&["--resume"][..], mine),
            // Results, and a line that is none.
            (
                &["--resume"][..],
                "{\"line\":1,\"input\":\"k\",\"error\":null}\n{\"x\":1}\n",
            ),
        ] {
            let file = dir.path().join(name);
            fs::write(&file, text).unwrap();
            let refused = batch(&input, &out, more).output().unwrap();
            assert_eq!(refused.status.code(), Some(1));
            let said = String::from_utf8(refused.stderr).unwrap();
            let told = format!("{name} is not a result of batch; choose another --out");
            assert!(said.contains(&told), "{said}");
            assert!(!said.contains("--resume"), "{said}");
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
            fs::remove_file(&file).unwrap();
            let left = fs::read_dir(dir.path()).unwrap().count();
            assert_eq!(left, 1, "the input alone");
        }
    }
}

#[test]
fn the_input_is_not_the_output() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.jsonl");
    fs::write(&input, "\"a\"\n").unwrap();
    let roundabout = dir.path().join(".").join("in.jsonl");
    for more in [&[][..], &["--resume"]] {
        let refused = batch(&input, &roundabout, more).output().unwrap();
        assert_eq!(refused.status.code(), Some(1));
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(said.contains("in.jsonl is the input"), "{said}");
        assert!(!said.contains("--resume"), "{said}");
        assert_eq!(fs::read_to_string(&input).unwrap(), "\"a\"\n");
    }
}

#[test]
fn two_batches_do_not_share_an_output_and_a_dead_one_holds_nobody_up() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("in.jsonl"), dir.path().join("out.jsonl"));
    let lock = dir.path().join("out.jsonl.lock");
    fs::write(&input, "\"a\"\n").unwrap();

    let held = Journal::create(&out).unwrap();
    let refused = batch(&input, &out, &["--resume"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    let told = format!("is being written by process {}", std::process::id());
    assert!(said.contains(&told), "{said}");
    assert!(lock.exists(), "it is the other's");
    drop(held);
    assert!(!lock.exists());

    // As a kill leaves it: with a number, which may be anybody's by now.
    let left = format!("opus-to-gemini batch, process {}\n", std::process::id());
    fs::write(&lock, left).unwrap();
    let taken = batch(&input, &out, &["--resume"]).output().unwrap();
    assert!(taken.status.success());
    assert!(!lock.exists());
}

/// Waits until so many results are on disk; the test runner bounds it.
fn kill_after(child: &mut Child, part: &Path, results: usize) {
    while fs::read_to_string(part).unwrap_or_default().lines().count() <= results {
        assert!(
            child.try_wait().unwrap().is_none(),
            "it ended before it was killed"
        );
        std::thread::sleep(Duration::from_millis(2));
    }
    // SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn killed_twice_and_resumed_every_item_is_in_the_output_once() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("in.jsonl"), dir.path().join("out.jsonl"));
    let part = dir.path().join("out.jsonl.part");
    let text: String = (1..=300)
        .map(|n| format!("{{\"id\": {n}, \"prompt\": \"p{n}\"}}\n"))
        .collect();
    fs::write(&input, text).unwrap();

    kill_after(&mut batch(&input, &out, &[]).spawn().unwrap(), &part, 30);
    let before = fs::read_to_string(&part).unwrap().lines().count();
    kill_after(
        &mut batch(&input, &out, &["--resume"]).spawn().unwrap(),
        &part,
        before + 30,
    );
    assert!(!out.exists());
    // What a kill in mid-write leaves.
    let torn = fs::read_to_string(&part).unwrap() + "{\"line\":299,\"id\":\"299\",\"ke";
    fs::write(&part, torn).unwrap();

    let refused = batch(&input, &out, &[]).output().unwrap();
    assert!(!refused.status.success());
    let last = batch(&input, &out, &["--resume"]).output().unwrap();
    let said = String::from_utf8(last.stdout).unwrap();
    assert!(last.status.success(), "{said}");
    assert_eq!(said, "done: ok=300 fail=0\n");
    assert!(!part.exists());
    let written = lines(&out);
    let ids: Vec<String> = written
        .iter()
        .map(|l| l["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids, (1..=300).map(|n| n.to_string()).collect::<Vec<_>>());
    for line in written {
        let said = line["answer"].as_str().unwrap();
        assert!(
            said.ends_with(&format!(": p{}", line["id"].as_str().unwrap())),
            "{said}"
        );
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_cleanly_and_says_how_to_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("in.jsonl"), dir.path().join("out.jsonl"));
    let part = dir.path().join("out.jsonl.part");
    fs::write(&input, "\"x\"\n".repeat(500)).unwrap();
    let child = batch(&input, &out, &[]).spawn().unwrap();
    while fs::read_to_string(&part)
        .unwrap_or_default()
        .lines()
        .count()
        < 20
    {
        std::thread::sleep(Duration::from_millis(2));
    }
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    assert!(!dir.path().join("out.jsonl.lock").exists());
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(said.starts_with("stopped: ok="), "{said}");
    assert!(
        String::from_utf8(ended.stderr)
            .unwrap()
            .contains("--resume")
    );
    let results = fs::read_to_string(&part).unwrap();
    let results = results.lines().filter(|l| !l.is_empty()).count();
    assert!(
        said.contains(&format!("ok={results} fail=0 left={}", 500 - results)),
        "{said}"
    );
}

#[test]
fn a_failing_item_is_counted_and_the_exit_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("in.jsonl"), dir.path().join("out.jsonl"));
    fs::write(&input, "\"a\"\n[]\n").unwrap();
    let ended = batch(&input, &out, &[]).output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(ended.stdout).unwrap(),
        "done: ok=1 fail=1\n"
    );
    assert_eq!(lines(&out)[1]["error"]["class"], "caller_fault");
}

fn said(refused: &std::process::Output) -> String {
    String::from_utf8(refused.stderr.clone()).unwrap()
}

#[test]
fn an_edited_input_is_told_before_an_answer_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("in.jsonl"), dir.path().join("out.jsonl"));
    let one = "{\"prompt\": \"a\", \"idempotency_key\": \"k\"}";
    fs::write(&input, format!("{one}\n\"b\"\n[]\n")).unwrap();
    assert_eq!(
        batch(&input, &out, &[]).output().unwrap().status.code(),
        Some(1)
    );
    let before = fs::read_to_string(&out).unwrap();

    // A line that failed is mended, and more come after it.
    fs::write(&input, format!("{one}\n\"b\"\n\"c\"\n\"d\"\n")).unwrap();
    let more = batch(&input, &out, &["--resume"]).output().unwrap();
    assert!(more.status.success(), "{}", said(&more));
    let after = fs::read_to_string(&out).unwrap();
    assert_eq!(
        after.lines().take(2).collect::<Vec<_>>(),
        before.lines().take(2).collect::<Vec<_>>()
    );

    // Everything moves by one; one says something else under its own key; one is gone.
    let other = one.replace("\"a\"", "\"x\"");
    for (text, count, first) in [
        (format!("\"new\"\n{one}\n\"b\"\n\"c\"\n\"d\"\n"), 4, 1),
        (format!("{other}\n\"b\"\n\"c\"\n\"d\"\n"), 1, 1),
        (format!("{one}\n\"b\"\n\"c\"\n"), 1, 4),
    ] {
        fs::write(&input, &text).unwrap();
        let refused = batch(&input, &out, &["--resume"]).output().unwrap();
        assert_eq!(refused.status.code(), Some(1));
        let told = format!("{count} of the answers in {}", out.display());
        let said = said(&refused);
        assert!(said.contains(&told) && said.contains("--edited"), "{said}");
        assert!(said.contains(&format!("line {first} first")), "{said}");
        assert_eq!(fs::read_to_string(&out).unwrap(), after);
    }

    let meant = batch(&input, &out, &["--resume", "--edited"]);
    let meant = { meant }.output().unwrap();
    assert!(meant.status.success(), "{}", said(&meant));
    assert_eq!(
        lines(&out).len(),
        3,
        "what is gone from the input is gone from the output"
    );
}

#[test]
fn prompts_may_come_on_stdin() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out.jsonl");
    let feed = |text: &str, more: &[&str]| {
        let from = dir.path().join("piped");
        fs::write(&from, text).unwrap();
        let mut command = batch(Path::new("-"), &out, more);
        command.stdin(fs::File::open(from).unwrap());
        command.output().unwrap()
    };
    let first = feed("\"a\"\n[]\n", &[]);
    assert_eq!(first.status.code(), Some(1));
    assert!(said(&first).contains("with the same on stdin"));
    let again = feed("\"a\"\n\"b\"\n", &["--resume"]);
    assert!(again.status.success(), "{}", said(&again));
    assert_eq!(again.stdout, b"done: ok=2 fail=0\n");
    let empty = feed("", &["--resume"]);
    assert!(said(&empty).contains("stdin has no lines"));
}
