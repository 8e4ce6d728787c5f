//! Whether what a caller got is a whole answer, one clear error, or neither.

use std::collections::BTreeMap;

use serde_json::Value;

/// What a caller got.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Got {
    /// Every word of an answer, by this model.
    Whole(String),
    /// One error, and nothing after it: its status, or 200 for one in a stream, and its code.
    Error(u16, String),
    /// The caller left while a stream was open.
    Left,
    /// Neither: this is wrong.
    Lost(String),
}

/// How many got what.
pub type Counts = BTreeMap<Got, usize>;

/// Reads a whole response: answers have `words` words, each `MODEL:N`, and come in events if they
/// are asked for so.
pub fn judge(status: u16, stream: bool, body: &[u8], words: usize) -> Got {
    let Ok(text) = std::str::from_utf8(body) else {
        return lost("no UTF-8", status, body);
    };
    if status == 200 && stream {
        return judge_events(text, words);
    }
    let Ok(body_json) = serde_json::from_slice::<Value>(body) else {
        return lost("no JSON", status, body);
    };
    if status != 200 {
        return error(status, &body_json).unwrap_or_else(|| lost("no error object", status, body));
    }
    let said = body_json["choices"][0]["message"]["content"].as_str();
    let model = said.and_then(|said| whole(said, words));
    model.map_or_else(|| lost("no whole answer", status, body), Got::Whole)
}

fn judge_events(text: &str, words: usize) -> Got {
    let (mut said, mut failed, mut finished) = (String::new(), None, false);
    for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        if failed.is_some() {
            return lost("something after an error", 200, text.as_bytes());
        }
        if data == "[DONE]" {
            continue;
        }
        let Ok(event) = serde_json::from_str::<Value>(data) else {
            return lost("an event that is no JSON", 200, text.as_bytes());
        };
        failed = error(200, &event);
        let choice = &event["choices"][0];
        said.push_str(choice["delta"]["content"].as_str().unwrap_or(""));
        finished |= choice["finish_reason"] == "stop";
    }
    if let Some(failed) = failed {
        return failed;
    }
    let model = whole(&said, words).filter(|_| finished);
    model.map_or_else(|| lost("a silent end", 200, text.as_bytes()), Got::Whole)
}

fn error(status: u16, body: &Value) -> Option<Got> {
    let error = body.get("error")?;
    error["message"].as_str().filter(|said| !said.is_empty())?;
    let code = error["code"].as_str().or(error["type"].as_str())?;
    Some(Got::Error(status, code.to_owned()))
}

/// The model of an answer that is all there, in order, and from one model.
fn whole(said: &str, words: usize) -> Option<String> {
    let (model, _) = said.split_once(':')?;
    let all: Vec<String> = (1..=words).map(|n| format!("{model}:{n}")).collect();
    (said == all.join(" ")).then(|| model.to_owned())
}

fn lost(why: &str, status: u16, body: &[u8]) -> Got {
    let body = String::from_utf8_lossy(body);
    let end: String = body
        .chars()
        .rev()
        .take(200)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    Got::Lost(format!("{why}, status {status}, ends in {end:?}"))
}
