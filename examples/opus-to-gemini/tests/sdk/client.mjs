// What users of the Node SDK see of the gateway: one scenario a run, named by the argument.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createRequire } from "node:module";

// Installed beside the build, and not in the sources.
const require = createRequire(process.env.NODE_HOME + "/");
const OpenAI = require("openai");

const baseURL = process.env.GATEWAY_URL;
const model = "claude-opus";
const messages = [{ role: "user", content: "Hello there" }];
const tools = [
  {
    type: "function",
    function: {
      name: "repeat",
      description: "Says something back.",
      parameters: { type: "object", properties: { said: { type: "string" } } },
    },
  },
];

// With the SDK's own defaults, its retries included.
const client = new OpenAI({ baseURL, apiKey: process.env.GATEWAY_KEY ?? "any" });
const chat = (settings = {}) => client.chat.completions.create({ model, messages, ...settings });

async function raises(kind, status, code, call) {
  const error = await call().then(
    () => assert.fail("no error"),
    (error) => error,
  );
  assert.ok(error instanceof kind, String(error));
  assert.equal(error.status, status);
  if (code) assert.equal(error.code, code);
  return error;
}

const scenarios = {
  async plain() {
    const { data, response } = await chat().withResponse();
    assert.match(data.choices[0].message.content, /Hello there/);
    assert.equal(data.model, process.env.SERVES);
    assert.ok(data.usage.total_tokens > 0);
    assert.equal(response.headers.get("x-spillway-target"), process.env.TARGET);
    assert.ok(Number(response.headers.get("x-spillway-attempts")) >= 1);
    assert.equal(data._request_id, response.headers.get("x-request-id"));
  },

  async stream() {
    const chunks = [];
    const events = await chat({ stream: true, stream_options: { include_usage: true } });
    for await (const chunk of events) chunks.push(chunk);
    const text = chunks.map((c) => c.choices[0]?.delta.content ?? "").join("");
    assert.match(text, /Hello there/);
    assert.ok(chunks.length > 4);
    assert.equal(chunks[0].model, process.env.SERVES);
    assert.ok(chunks.at(-1).usage.completion_tokens > 0);
  },

  async tools() {
    const answer = await chat({ tools });
    const [call] = answer.choices[0].message.tool_calls;
    assert.equal(call.function.name, "repeat");
    assert.equal(answer.choices[0].finish_reason, "tool_calls");
    assert.equal(call.function.arguments, '{"said":"Hello there"}');
    const more = [
      ...messages,
      answer.choices[0].message,
      { role: "tool", tool_call_id: call.id, content: "said" },
    ];
    const last = await chat({ messages: more, tools });
    assert.match(last.choices[0].message.content, /^This is a fake/);
  },

  async streamed_tools() {
    const answer = await client.chat.completions.stream({ model, messages, tools }).finalChatCompletion();
    const [call] = answer.choices[0].message.tool_calls;
    assert.equal(call.function.name, "repeat");
    assert.equal(call.function.arguments, '{"said":"Hello there"}');
  },

  async models() {
    const names = [];
    for await (const { id } of client.models.list()) names.push(id);
    assert.ok(names.includes(model), names);
    assert.equal((await client.models.retrieve(model)).id, model);
  },

  async unknown_model() {
    await raises(OpenAI.NotFoundError, 404, "model_not_found", () => chat({ model: "gpt-none" }));
  },

  async bad_request() {
    await raises(OpenAI.BadRequestError, 400, null, () => chat({ messages: [] }));
    // What only the vendor can judge comes back in its words.
    const nobody = [{ role: "nobody", content: "" }];
    const error = await raises(OpenAI.BadRequestError, 400, null, () => chat({ messages: nobody }));
    assert.match(error.message, /role/);
  },

  async wrong_key() {
    const other = new OpenAI({ baseURL, apiKey: "wrong" });
    const ask = () => other.chat.completions.create({ model, messages });
    await raises(OpenAI.AuthenticationError, 401, null, ask);
  },

  async all_out() {
    const error = await raises(OpenAI.InternalServerError, 503, null, () => chat());
    assert.equal(error.headers.get("x-should-retry"), "false");
    assert.ok(Number(error.headers.get("retry-after")) >= 0);
    const tried = error.error.tried.map((attempt) => attempt.target);
    assert.ok(tried.includes("opus") && tried.includes("gemini"), tried);
  },

  async broken_stream() {
    let read = "";
    const events = await chat({ stream: true });
    const error = await (async () => {
      for await (const chunk of events) read += chunk.choices[0]?.delta.content ?? "";
    })().then(
      () => assert.fail("the break was not told"),
      (error) => error,
    );
    assert.ok(error instanceof OpenAI.APIError, String(error));
    assert.equal(read.split(" ").filter(Boolean).length, 40);
  },

  async not_served() {
    const ask = () => client.embeddings.create({ model, input: "x" });
    await raises(OpenAI.NotFoundError, 404, null, ask);
  },

  async cancel() {
    const events = await chat({ stream: true });
    for await (const _ of events) break;
    events.controller.abort();
    console.log("closed");
    // Alive until the test has seen that the upstream was left.
    await once(process.stdin, "data");
    process.exit();
  },
};

await scenarios[process.argv[2]]();
