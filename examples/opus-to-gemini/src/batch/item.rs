//! One line of the input.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::chat::Chat;

/// One line of the input: a string, an object with `prompt` or `messages`, or a line of OpenAI's
/// batch format.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Item {
    /// Which line, from 1.
    pub line: usize,
    /// Of what the line says: another one means that it says something else.
    pub digest: String,
    /// `id` or `custom_id`, if given.
    pub id: Option<String>,
    /// The same over requeues and restarts: the user's `idempotency_key`, else made of id or line
    /// and of what the line says.
    pub key: String,
    /// The chat, or why the line is none.
    pub chat: Result<Map<String, Value>, BadLine>,
    /// Whether the line has OpenAI's batch format; what comes out then has the whole answer.
    pub whole: bool,
}

/// Why a line is no chat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine(String);

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadLine {}

/// All items of a file. Empty lines are none.
pub fn items(text: &str) -> Vec<Item> {
    let lines = text.lines().zip(1..);
    let filled = lines.filter(|(line, _)| !line.trim().is_empty());
    filled.map(|(line, n)| Item::read(line, n)).collect()
}

impl Item {
    fn read(text: &str, line: usize) -> Self {
        // Not of the ends: an editor may change how lines end.
        let digest = format!("{:016x}", fnv(text.trim().as_bytes()));
        let mut item = Self {
            line,
            digest,
            id: None,
            key: String::new(),
            chat: Err(BadLine("it is not JSON".into())),
            whole: false,
        };
        let mut own_key = None;
        item.chat = match serde_json::from_str(text) {
            Err(error) => Err(BadLine(format!(
                "it is not JSON: column {}",
                error.column()
            ))),
            Ok(Value::String(prompt)) => Ok(asking(&prompt)),
            Ok(Value::Object(fields)) => item.object(fields, &mut own_key),
            Ok(_) => Err(BadLine("it must be a string or an object".into())),
        };
        item.key = own_key.unwrap_or_else(|| {
            // Of the content too: `1` of another file is another call.
            let digest = &item.digest;
            match &item.id {
                Some(id) => format!("batch-{digest}-{}", printable(id)),
                None => format!("batch-{digest}-line-{line}"),
            }
        });
        item
    }

    fn object(
        &mut self,
        mut fields: Map<String, Value>,
        own_key: &mut Option<String>,
    ) -> Result<Map<String, Value>, BadLine> {
        self.id = text(fields.shift_remove("id"));
        if let Some(key) = text(fields.shift_remove("idempotency_key")) {
            *own_key = Some(key);
        }
        if let Some(Value::Object(body)) = fields.shift_remove("body") {
            self.whole = true;
            self.id = text(fields.shift_remove("custom_id")).or_else(|| self.id.take());
            let url = fields.get("url").and_then(Value::as_str);
            return match url {
                Some(url) if !url.ends_with("/chat/completions") => {
                    Err(BadLine(format!("{url} is no chat: only chats are sent")))
                }
                _ => checked(body),
            };
        }
        match fields.shift_remove("prompt") {
            Some(Value::String(prompt)) if !fields.contains_key("messages") => {
                let mut body = asking(&prompt);
                body.extend(fields);
                Ok(body)
            }
            Some(_) => Err(BadLine("prompt must be a string, without messages".into())),
            None => checked(fields),
        }
    }

    /// The chat, under its key.
    pub(super) fn chat(&self) -> Result<Chat, BadLine> {
        let body = self.chat.clone()?;
        let name = match &self.id {
            Some(id) => printable(id),
            None => format!("line-{}", self.line),
        };
        Ok(Chat::of(body).id(name).idempotency_key(&self.key))
    }
}

fn checked(body: Map<String, Value>) -> Result<Map<String, Value>, BadLine> {
    match body.get("messages") {
        Some(Value::Array(messages)) if !messages.is_empty() => Ok(body),
        _ => Err(BadLine("it needs a prompt or messages".into())),
    }
}

fn asking(prompt: &str) -> Map<String, Value> {
    let mut body = Map::new();
    let message = json!({"role": "user", "content": prompt});
    body.insert("messages".into(), json!([message]));
    body
}

/// An id may be a string or a number.
fn text(value: Option<Value>) -> Option<String> {
    match value? {
        Value::String(text) if !text.is_empty() => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Fit for a header.
fn printable(text: &str) -> String {
    let fit = |c: char| if c.is_ascii_graphic() { c } else { '_' };
    text.chars().map(fit).take(100).collect()
}

/// FNV-1a: the same in every release, which the hashes of the standard library are not.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Item {
        items(line).remove(0)
    }

    fn prompt(item: &Item) -> &Value {
        &item.chat.as_ref().unwrap()["messages"][0]["content"]
    }

    #[test]
    fn every_form_of_a_line() {
        assert_eq!(prompt(&one("\"hi\"")), "hi");
        let item = one(r#"{"prompt": "hi", "max_tokens": 5, "id": 7}"#);
        assert_eq!(
            (prompt(&item), item.id.as_deref()),
            (&json!("hi"), Some("7"))
        );
        assert_eq!(item.chat.unwrap()["max_tokens"], 5);
        let item =
            one(r#"{"messages": [{"role": "user", "content": "hi"}], "idempotency_key": "k"}"#);
        assert_eq!((prompt(&item), item.key.as_str()), (&json!("hi"), "k"));
        let item = one(
            r#"{"custom_id": "a", "method": "POST", "url": "/v1/chat/completions",
                "body": {"model": "m", "messages": [{"role": "user", "content": "hi"}]}}"#
                .replace('\n', " ")
                .as_str(),
        );
        assert_eq!(
            (prompt(&item), item.id.as_deref()),
            (&json!("hi"), Some("a"))
        );
        assert!(item.whole);
    }

    #[test]
    fn lines_that_are_no_chat_say_why() {
        for (line, why) in [
            ("{", "it is not JSON"),
            ("7", "a string or an object"),
            ("{}", "a prompt or messages"),
            (r#"{"messages": []}"#, "a prompt or messages"),
            (r#"{"prompt": 1}"#, "prompt must be a string"),
            (
                r#"{"custom_id": "a", "url": "/v1/embeddings", "body": {"input": "x"}}"#,
                "/v1/embeddings is no chat",
            ),
        ] {
            let said = one(line).chat.unwrap_err().to_string();
            assert!(said.contains(why), "{line}: {said}");
        }
    }

    #[test]
    fn a_line_that_is_nested_deeply_is_no_chat() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for line in [deep.clone(), format!(r#"{{"messages": {deep}}}"#)] {
            let said = one(&line).chat.unwrap_err().to_string();
            assert!(said.contains("it is not JSON"), "{said}");
        }
    }

    #[test]
    fn keys_are_of_id_or_line_and_of_the_content() {
        let all = items("\"a\"\n\n\"a\"\n{\"id\":\"x y\",\"prompt\":\"a\"}\n");
        let lines: Vec<_> = all.iter().map(|i| i.line).collect();
        assert_eq!(lines, [1, 3, 4]);
        assert_ne!(all[0].key, all[1].key);
        assert!(all[2].key.ends_with("-x_y"));
        assert_eq!(
            all,
            items("\"a\"\n\n\"a\"\n{\"id\":\"x y\",\"prompt\":\"a\"}")
        );
        assert_ne!(one("\"a\"").key, one("\"b\"").key);
    }
}
