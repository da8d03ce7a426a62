"""The model server by itself: what it sends is what its log says, in each of the three languages."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from tests.models.rules import Call, Endless, Fail, Pause, Rule, Shell, Text, Used, say, slow
from tests.models.server import ModelServer
from tests.waiting import wait_until_sync

TEXT = "Line one.\n\n```py\nx = '日本語 👩‍👩‍👧'\n```\nend"
LANGUAGES = ("claude", "codex", "gemini")
TOOLS = {
    "claude": [{"name": "Bash"}],
    "codex": [{"type": "function", "name": "exec_command"}],
    "gemini": [{"functionDeclarations": [{"name": "run_shell_command"}]}],
}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def body_of(language: str, turns: list[tuple[str, str]], *, has_tools: bool = True) -> dict[str, Any]:
    """Build a request as the CLI of that language does; a turn is (role, text), roles user and model."""
    tools = TOOLS[language] if has_tools else []
    if language == "claude":
        roles = {"user": "user", "model": "assistant"}
        messages = [
            {"role": roles[role], "content": [{"type": "text", "text": text}]} for role, text in turns
        ]
        return {"model": "m", "stream": True, "messages": messages, "tools": tools}
    if language == "codex":
        kinds = {"user": ("user", "input_text"), "model": ("assistant", "output_text")}
        items = [
            {"type": "message", "role": kinds[role][0], "content": [{"type": kinds[role][1], "text": text}]}
            for role, text in turns
        ]
        return {"model": "m", "stream": True, "input": items, "tools": tools}
    return {"contents": [{"role": role, "parts": [{"text": text}]} for role, text in turns], "tools": tools}


def post(
    server: ModelServer, language: str, body: dict[str, Any], client: str = "", *, stream: bool = False
) -> requests.Response:
    path = {
        "claude": "v1/messages?beta=true",
        "codex": "v1/responses",
        "gemini": "v1beta/models/gemini-x:streamGenerateContent?alt=sse",
    }[language]
    return requests.post(f"{server.url(client or language)}/{path}", json=body, timeout=10, stream=stream)


def ask(server: ModelServer, language: str, *texts: str, client: str = "") -> requests.Response:
    turns = [("user", text) for text in texts]
    return post(server, language, body_of(language, turns), client)


def events(response: requests.Response) -> list[dict[str, Any]]:
    assert response.headers["Content-Type"] == "text/event-stream"
    lines = response.content.decode().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def text_of(language: str, answer: list[dict[str, Any]]) -> str:
    if language == "claude":
        return "".join(
            event["delta"].get("text", "") for event in answer if event["type"] == "content_block_delta"
        )
    if language == "codex":
        return "".join(event["delta"] for event in answer if event["type"] == "response.output_text.delta")
    parts = [part for event in answer for part in event["candidates"][0]["content"]["parts"]]
    return "".join(part.get("text", "") for part in parts)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("part", [Text(text=TEXT), slow(TEXT, 0.05), Text(text=TEXT, chunk_chars=1)])
def test_a_text_is_sent_exactly(server: ModelServer, language: str, part: Text) -> None:
    server.add(Rule(match="^go$", reply=[part]))

    assert text_of(language, events(ask(server, language, "go"))) == TEXT
    assert server.prompts(language) == ["go"]
    assert server.replies(language) == [TEXT]


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_answer_says_it_took_what_its_rule_says(server: ModelServer, language: str) -> None:
    server.add(
        Rule(match="^go$", reply=[Text(text=TEXT)], used=Used(cached=100, written=20, fresh=3, output=7))
    )
    told = json.dumps(events(ask(server, language, "go"))[-2:])

    of_input = {
        "claude": '"input_tokens": 3',
        "codex": '"input_tokens": 123',
        "gemini": '"promptTokenCount": 123',
    }
    assert of_input[language] in told
    cached = {
        "claude": '"cache_read_input_tokens": 100',
        "codex": '"cached_tokens": 100',
        "gemini": '"cachedContentTokenCount": 100',
    }
    assert cached[language] in told


@pytest.mark.parametrize("language", LANGUAGES)
def test_without_a_rule_the_answer_is_ok(server: ModelServer, language: str) -> None:
    assert text_of(language, events(ask(server, language, "anything"))) == "ok"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_side_call_is_answered_but_kept_out_of_the_log(server: ModelServer, language: str) -> None:
    response = post(server, language, body_of(language, [("user", "make a title")], has_tools=False))

    assert response.status_code == 200
    assert server.prompts(language) == []
    assert server.replies(language) == []
    assert [exchange.ask.kind for exchange in server.exchanges()] == ["side"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_repeated_request_after_an_error_counts_once(server: ModelServer, language: str) -> None:
    server.add(Rule(match="go", reply=[Fail(kind="overloaded")], times=1))

    first, second = ask(server, language, "go"), ask(server, language, "go")

    assert (first.status_code in (503, 529), second.status_code) == (True, 200)
    assert server.prompts(language) == ["go"]
    assert [exchange.is_retry for exchange in server.exchanges(language)] == [False, True]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_prompt_of_a_failed_turn_is_not_counted_again_with_the_next(
    server: ModelServer, language: str
) -> None:
    server.add(Rule(match="one", reply=[Fail(kind="auth")]))

    ask(server, language, "one")
    ask(server, language, "one", "two")

    assert server.prompts(language) == ["one", "two"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_same_prompt_after_a_clear_counts_twice(server: ModelServer, language: str) -> None:
    ask(server, language, "go")
    ask(server, language, "go")

    assert server.prompts(language) == ["go", "go"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_prompts_in_one_request_are_both_seen(server: ModelServer, language: str) -> None:
    turns = [("user", "zero"), ("model", "ok"), ("user", "one"), ("user", "two")]

    ask(server, language, "zero")
    post(server, language, body_of(language, turns))

    assert server.prompts(language) == ["zero", "one", "two"]


def test_two_clients_of_one_kind_are_told_apart(server: ModelServer) -> None:
    server.add(say("go", "for the second", client="claude-2"))

    ask(server, "claude", "go", client="claude")
    ask(server, "claude", "go", client="claude-2")

    assert (server.replies("claude"), server.replies("claude-2")) == (["ok"], ["for the second"])


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("kind", "statuses"),
    [("server", {500}), ("overloaded", {503, 529}), ("rate", {429}), ("limit", {429}), ("auth", {400, 401})],
)
def test_an_error_has_the_providers_status(
    server: ModelServer, language: str, kind: str, statuses: set[int]
) -> None:
    server.add(Rule(reply=[Fail(kind=kind)]))

    response = ask(server, language, "go")

    assert response.status_code in statuses
    assert response.json()["error"]["message"]
    assert server.replies(language) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_error_may_come_in_the_middle_of_the_stream(server: ModelServer, language: str) -> None:
    server.add(Rule(reply=[Text(text="half"), Fail(kind="overloaded")]))

    answer = ask(server, language, "go")

    assert answer.status_code == 200
    assert "overloaded" in answer.text.lower()
    assert server.replies(language) == []


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("part", [Endless(delay_s=0.01), Pause(seconds=60)])
def test_an_abort_by_the_client_is_seen(server: ModelServer, language: str, part: Endless | Pause) -> None:
    server.add(Rule(reply=[Text(text="begun"), part]))

    with post(server, language, body_of(language, [("user", "go")]), stream=True) as response:
        next(response.iter_content(1))

    exchange = server.exchanges(language)[0]
    wait_until_sync(lambda: exchange.ended == "aborted", what="the abort")
    assert server.replies(language) == []


def call_of(language: str, answer: list[dict[str, Any]]) -> tuple[str, str]:
    """Return the name of the tool that was called, with the command."""
    if language == "claude":
        block = next(event["content_block"] for event in answer if event.get("content_block", {}).get("name"))
        delta = next(event["delta"] for event in answer if "partial_json" in event.get("delta", {}))
        return block["name"], json.loads(delta["partial_json"])["command"]
    if language == "codex":
        items = [event["item"] for event in answer if event["type"] == "response.output_item.done"]
        item = next(item for item in items if item["type"] == "function_call")
        return item["name"], json.loads(item["arguments"])["cmd"]
    parts = [part for event in answer for part in event["candidates"][0]["content"]["parts"]]
    call = next(part["functionCall"] for part in parts if "functionCall" in part)
    return call["name"], call["args"]["command"]


def with_result(language: str, body: dict[str, Any]) -> dict[str, Any]:
    """Add what a CLI sends after it has run the tool."""
    if language == "claude":
        use = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
        result = {"type": "tool_result", "tool_use_id": "t", "content": "the result"}
        more = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
        return body | {"messages": body["messages"] + more}
    if language == "codex":
        call = {"type": "function_call", "call_id": "t", "name": "exec_command", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": "t", "output": "the result"}
        return body | {"input": [*body["input"], call, output]}
    asked = {"functionCall": {"name": "run_shell_command", "args": {}}}
    answered = {"functionResponse": {"name": "run_shell_command", "response": {"output": "the result"}}}
    more = [{"role": "model", "parts": [asked]}, {"role": "user", "parts": [answered]}]
    return body | {"contents": body["contents"] + more}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_tool_call_is_followed_by_the_text_after_it(server: ModelServer, language: str) -> None:
    server.add(Rule(match="go", reply=[Text(text="before"), Shell(command="ls -l"), Text(text="after")]))
    body = body_of(language, [("user", "go")])

    first = events(post(server, language, body))
    second = events(post(server, language, with_result(language, body)))

    assert call_of(language, first)[1] == "ls -l"
    assert call_of(language, first)[0] in ("Bash", "exec_command", "run_shell_command")
    assert text_of(language, second) == "after"
    assert server.replies(language) == ["after"]
    assert server.prompts(language) == ["go"]
    assert "the result" in server.results(language)[0]


def test_two_calls_in_a_row_are_one_step() -> None:
    rule = Rule(
        reply=[Call(name="A"), Call(name="B"), Text(text="between"), Call(name="C"), Text(text="end")]
    )

    sizes = [len(rule.step(number)) for number in range(4)]

    assert sizes == [2, 2, 1, 0]


def test_all_requests_are_searched_for_a_text(server: ModelServer) -> None:
    post(server, "claude", body_of("claude", [("user", 'a "secret" line\nhere')], has_tools=False))

    assert server.saw('"secret" line\nhere')
    assert not server.saw("secrets")


def test_a_long_paste_is_the_prompt_without_claudes_marks_around_it(server: ModelServer) -> None:
    pasted = '\n\n<pasted_content id="2a38">\nfirst\n\nlast\n</pasted_content>'
    ask(server, "claude", pasted, f"typed{pasted}")

    assert server.prompts() == ["first\n\nlast", "typedfirst\n\nlast"]


def test_claudes_own_texts_are_no_prompts(server: ModelServer) -> None:
    own = [
        "<system-reminder>x</system-reminder>",
        "[Request interrupted by user]",
        "<command-name>/clear</command-name>",
    ]

    ask(server, "claude", *own, "mine")

    assert server.prompts() == ["mine"]


def test_a_subagents_request_is_no_prompt_of_the_user(server: ModelServer) -> None:
    body = body_of("claude", [("user", "subtask")]) | {"system": [{"text": "cc_is_subagent=true;"}]}

    post(server, "claude", body)

    assert server.prompts() == []
    assert [exchange.ask.kind for exchange in server.exchanges()] == ["sub"]


def test_head_and_count_tokens_are_answered(server: ModelServer) -> None:
    head = requests.head(server.url("claude"), timeout=10)
    count = requests.post(f"{server.url('claude')}/v1/messages/count_tokens", json={}, timeout=10)

    assert (head.status_code, count.json()["input_tokens"] > 0) == (200, True)
    assert server.exchanges() == []


def test_an_answer_without_a_stream_is_one_json_body(server: ModelServer) -> None:
    server.add(say("go", TEXT))

    response = post(server, "claude", body_of("claude", [("user", "go")]) | {"stream": False})

    assert response.json()["content"] == [{"type": "text", "text": TEXT}]
