"""What users of the Python SDK see of the gateway: one scenario a run, named by the argument."""

import os
import sys

import openai
from openai import OpenAI

BASE = os.environ["GATEWAY_URL"]
MODEL = "claude-opus"
HELLO = [{"role": "user", "content": "Hello there"}]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "repeat",
            "description": "Says something back.",
            "parameters": {"type": "object", "properties": {"said": {"type": "string"}}},
        },
    }
]


def client(**settings):
    """With the SDK's own defaults, its retries included."""
    return OpenAI(base_url=BASE, api_key=os.environ.get("GATEWAY_KEY", "any"), **settings)


def plain():
    raw = client().chat.completions.with_raw_response.create(model=MODEL, messages=HELLO)
    answer = raw.parse()
    assert "Hello there" in answer.choices[0].message.content
    assert answer.model == os.environ["SERVES"], answer.model
    assert answer.usage.total_tokens > 0
    assert raw.headers["x-spillway-target"] == os.environ["TARGET"]
    assert int(raw.headers["x-spillway-attempts"]) >= 1
    assert int(raw.headers["x-spillway-latency-ms"]) >= 0
    assert answer._request_id == raw.headers["x-request-id"]


def stream():
    chunks = list(
        client().chat.completions.create(
            model=MODEL, messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
    )
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert "Hello there" in text
    assert len(chunks) > 4
    assert chunks[0].model == os.environ["SERVES"], chunks[0].model
    assert chunks[-1].usage.completion_tokens > 0


def tools():
    answer = client().chat.completions.create(model=MODEL, messages=HELLO, tools=TOOLS)
    call = answer.choices[0].message.tool_calls[0]
    assert (call.function.name, answer.choices[0].finish_reason) == ("repeat", "tool_calls")
    assert call.function.arguments == '{"said":"Hello there"}'
    messages = HELLO + [
        answer.choices[0].message,
        {"role": "tool", "tool_call_id": call.id, "content": "said"},
    ]
    answer = client().chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
    assert answer.choices[0].message.content.startswith("This is a fake")


def streamed_tools():
    with client().chat.completions.stream(model=MODEL, messages=HELLO, tools=TOOLS) as events:
        answer = events.get_final_completion()
    call = answer.choices[0].message.tool_calls[0]
    assert call.function.name == "repeat"
    assert call.function.arguments == '{"said":"Hello there"}'


def models():
    names = [model.id for model in client().models.list()]
    assert MODEL in names, names
    assert client().models.retrieve(MODEL).id == MODEL


def raises(kind, status, code, call):
    try:
        call()
    except openai.APIStatusError as error:
        assert type(error) is kind, repr(error)
        assert error.status_code == status, error.status_code
        assert code is None or error.code == code, error.code
        return error
    raise AssertionError("no error")


def chat(**settings):
    return lambda: client().chat.completions.create(
        **{"model": MODEL, "messages": HELLO, **settings}
    )


def unknown_model():
    raises(openai.NotFoundError, 404, "model_not_found", chat(model="gpt-none"))


def bad_request():
    raises(openai.BadRequestError, 400, None, chat(messages=[]))
    # What only the vendor can judge comes back in its words.
    error = raises(openai.BadRequestError, 400, None, chat(messages=[{"role": "nobody", "content": ""}]))
    assert "role" in error.message, error.message


def wrong_key():
    raises(
        openai.AuthenticationError,
        401,
        None,
        lambda: OpenAI(base_url=BASE, api_key="wrong").chat.completions.create(
            model=MODEL, messages=HELLO
        ),
    )


def all_out():
    error = raises(openai.InternalServerError, 503, None, chat())
    assert error.response.headers["x-should-retry"] == "false"
    assert int(error.response.headers["retry-after"]) >= 0
    tried = [attempt["target"] for attempt in error.body["tried"]]
    assert {"opus", "gemini"} <= set(tried), tried


def broken_stream():
    read = ""
    try:
        for chunk in chat(stream=True)():
            read += chunk.choices[0].delta.content or ""
    except openai.APIError as error:
        assert "broke" in error.message or "before" in error.message, error.message
        assert len(read.split()) == 40, read
        return
    raise AssertionError("the break was not told")


def not_served():
    raises(openai.NotFoundError, 404, None, lambda: client().embeddings.create(model=MODEL, input="x"))


def cancel():
    events = chat(stream=True)()
    next(iter(events))
    events.close()
    print("closed", flush=True)
    # Alive until the test has seen that the upstream was left.
    sys.stdin.readline()


globals()[sys.argv[1]]()
