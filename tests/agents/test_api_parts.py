"""What a model is asked, what its answer says, what its failure means: plain functions, no network."""

import json
import random
from typing import Any, Final

import pytest

from csp.agents.api.call_errors import failure_of, retry_after_s, scrubbed, wait_s
from csp.agents.api.model_pane import ModelPane, cost_text
from csp.agents.api.providers import anthropic_usage, chat_usage, responses_usage, unsupported
from csp.agents.api.reply_stream import Listener, is_blank, without_nulls
from csp.agents.api.request import Exchange, ModelMessage, ModelRequest, ask_for, reply_schema
from csp.errors import CallFailed
from csp.model_providers import PROVIDERS
from csp.prompt_files import load_prompts
from csp.protocol.enums import ALL, HUMAN, AgentId, DeliverKind, MessageId
from csp.protocol.requests import Usage
from csp.protocol.responses import Deliver
from csp.room.agent_text import Envelope
from csp.room.sessions.session_state import WindowItem

PROMPTS: Final = load_prompts()
KEY: Final = "sk-proj-abc123def456"


def message(text: str = "hello", **fields: Any) -> Deliver:
    values: dict[str, Any] = {
        "id": "m-9",
        "seq": 9,
        "kind": DeliverKind.MESSAGE,
        "sender": "human",
        "urgent": False,
    }
    return Deliver(**values | {"text": text} | fields)


def turn(text: str = "Round 1 of 6", **fields: Any) -> Deliver:
    return message(text, kind=DeliverKind.TURN, turn="t-9", sender="system", **fields)


def said(number: int, text: str) -> WindowItem:
    return WindowItem(MessageId(f"m-{number}"), AgentId("human"), ALL, text)


# --- asking --------------------------------------------------------------------------------------


def test_a_message_is_asked_with_the_last_words_of_the_room() -> None:
    window = [said(number, f"remark {number}") for number in range(1, 10)]
    ask = ask_for(message("and you?"), "be brief", PROMPTS, window)

    (only,) = ask.said
    assert "human: remark 8" in only.text and "remark 9" not in only.text
    assert only.text.endswith("Now human says to you:\n\nand you?")
    assert (ask.system, ask.schema) == ("be brief", None)


def test_a_window_has_eight_items_at_most_oldest_dropped_first() -> None:
    window = [said(number, f"remark {number}.") for number in range(20, 40)]
    (only,) = ask_for(message(), "", PROMPTS, window).said

    shown = [number for number in range(20, 40) if f"remark {number}." in only.text]
    assert shown == list(range(32, 40))


def test_a_turn_is_asked_in_the_words_of_the_room_with_the_names_of_its_session() -> None:
    ask = ask_for(turn("Round 2 of 6\n\nGo on.", handoff_to=("gpt", "claude")), "", PROMPTS)

    assert ask.messages == [{"role": "user", "content": "Round 2 of 6\n\nGo on."}]
    assert ask.schema is not None
    assert ask.schema["properties"]["handoff"]["anyOf"][0]["properties"]["to"]["enum"] == ["gpt", "claude"]


def test_a_repair_shows_the_model_its_answer_before() -> None:
    before = Exchange(asked="Write a tale.", answered="Sure! Once")
    ask = ask_for(turn("Once more, as JSON.", is_repair=True), "", PROMPTS, before=before)

    assert [(one.role, one.text) for one in ask.said] == [
        ("user", "Write a tale."),
        ("assistant", "Sure! Once"),
        ("user", "Once more, as JSON."),
    ]


def test_a_turn_that_is_no_repair_has_nothing_of_the_one_before() -> None:
    before = Exchange(asked="Write a tale.", answered="Sure! Once")

    assert len(ask_for(turn(), "", PROMPTS, before=before).said) == 1


@pytest.mark.parametrize("names", [(), ("gpt", "claude")])
def test_a_strict_schema_wants_every_property_and_no_other(names: tuple[str, ...]) -> None:
    def check(part: dict[str, Any]) -> None:
        assert part["required"] == list(part["properties"])
        assert part["additionalProperties"] is False

    schema = reply_schema(names)
    check(schema)
    assert ("handoff" in schema["properties"]) == bool(names)
    if names:
        check(schema["properties"]["handoff"]["anyOf"][0])


# --- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"message": "hi", "handoff": null, "final": null}', '{"message": "hi"}'),
        ('{"message": "hi", "final": true}', '{"message": "hi", "final": true}'),
        ('{"message": null}', "{}"),
        ("null", "null"),
        ("[null]", "[null]"),
        ("plain {null}", "plain {null}"),
        ("{not json}", "{not json}"),
        ('{"message": "日本 \\ud83e", "final": null}', '{"message": "日本 \\ud83e", "final": null}'),
    ],
)
def test_nulls_of_a_strict_schema_are_dropped(text: str, expected: str) -> None:
    assert without_nulls(text) == expected


@pytest.mark.parametrize("text", ["", " \n", '{"message": ""}', '{"message": "  ", "final": true}'])
def test_an_empty_answer_says_nothing(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["words", "{}", '{"message": "x"}', '{"message": 5}', "[]"])
def test_any_other_answer_says_something(text: str) -> None:
    assert not is_blank(text)


WORDS: Final = 'He said "hi"\n\tto \\ 日本 👩‍👩‍👧 é and / left.'


@pytest.mark.parametrize("ascii", [True, False])
def test_only_the_message_of_an_envelope_is_heard_however_it_is_cut(ascii: bool) -> None:
    reply = json.dumps(
        {"message": WORDS, "handoff": {"to": "x", "task": "y"}, "final": None}, ensure_ascii=ascii
    )
    for size in range(1, len(reply) + 1):
        listener = Listener()
        pieces = [reply[at : at + size] for at in range(0, len(reply), size)]
        assert "".join(map(listener.hear, pieces)) == WORDS


@pytest.mark.parametrize("text", ["just words", "\n ```json\n{}\n```", 'Sure! {"message": "x"}', "[1, 2]"])
def test_what_is_no_envelope_is_heard_as_it_is(text: str) -> None:
    listener = Listener()

    assert "".join(map(listener.hear, text)) == text


def odd_replies(count: int) -> list[bytes]:
    """Return replies as no model should give them, the same ones each time."""
    chance = random.Random(6)
    scraps = [
        *(b'{"message": "hi"}', b'{"message": ', b'"handoff": {"to": "gpt", "task": "go"}', b'"final": true'),
        *(
            b"{",
            b"}",
            b"[",
            b"]",
            b'"',
            b"\\",
            b"\\u",
            b"\\ud83d",
            b",",
            b":",
            b"null",
            b"true",
            b"0",
            b"-1e999",
        ),
        *(b"```json\n", b"\n```", b"Sure! ", b"\xe6\x97", b"\xff\xfe", b"\x00", b"\x1b[31m", b" ", b"\n"),
        *("日本".encode(), "👩‍👩‍👧".encode(), b'{"message": 5}', b'{"message": ["x"]}', b"@final\n"),
        *(b"@handoff.gpt go\n", b'{"message": "a", "extra": {}}', b"{}{}", b"NaN", b"/*", b"VOTE: [A]\n"),
    ]
    replies = [b"".join(chance.choices(scraps, k=chance.randint(0, 12))) for _ in range(count - 6)]
    replies += [b"{" * 200_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000, b'{"message": "' + b"x" * 10**6]
    replies += [b"[" * 100_000 + b"]" * 100_000, b'{"message": "' + b"\\" * 99_999, b""]
    return replies


def test_ten_thousand_odd_replies_give_a_message_each_and_never_an_exception() -> None:
    for raw in odd_replies(10_000):
        text = raw.decode("utf-8", "replace")
        listener = Listener()
        middle = len(text) // 2
        heard = listener.hear(text[:middle]) + listener.hear(text[middle:])
        found = Envelope.parse(without_nulls(text), is_required=True)

        assert isinstance(heard, str)
        assert found.message or is_blank(text) or not text
        if found.malformed:
            assert (found.handoff, found.final) == (None, False)


# --- failing -------------------------------------------------------------------------------------


class Response:
    def __init__(self, headers: dict[str, str]) -> None:
        self.headers = headers


class Refusal(Exception):
    """What the SDKs raise, as far as it is looked at."""

    def __init__(self, status: int | None, said: str = "", code: str = "", **headers: str) -> None:
        super().__init__(said)
        self.message = said
        self.status_code = status
        self.body: object = {"error": {"message": said, "code": code or None}}
        self.response = Response({name.replace("_", "-"): value for name, value in headers.items()})


@pytest.mark.parametrize(
    ("status", "is_passing"),
    [
        (429, True),
        (500, True),
        (503, True),
        (529, True),
        (400, False),
        (404, False),
        (409, False),
        (422, False),
    ],
)
def test_only_429_and_5xx_are_tried_again(status: int, is_passing: bool) -> None:
    failure = failure_of(Refusal(status, "no"), KEY, 0.0)

    assert (failure.is_passing, failure.message) == (is_passing, f"{status}: no")


@pytest.mark.parametrize("status", [401, 403])
def test_of_a_refused_key_nothing_is_repeated(status: int) -> None:
    failure = failure_of(Refusal(status, f"Incorrect API key provided: {KEY[:8]}****f456"), KEY, 0.0)

    assert failure.message == f"{status}: the key was refused"
    assert not failure.is_passing


def test_a_quota_that_is_used_up_is_not_tried_again() -> None:
    assert not failure_of(Refusal(429, "pay", "insufficient_quota"), KEY, 0.0).is_passing
    assert not failure_of(Refusal(429, "wait", x_should_retry="false"), KEY, 0.0).is_passing


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "99999999999999999999"}, 86400.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 86400.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, 50.0),
        *(({"retry-after": value}, None) for value in ("soon", "nan", "inf", "")),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after_s(headers, 10.0) == expected


def test_waits_grow_with_jitter_and_honour_retry_after() -> None:
    plain = CallFailed("x", is_passing=True)
    for tries, full in enumerate((0.5, 1.0, 2.0, 4.0)):
        waits = {wait_s(plain, tries) for _ in range(50)}
        assert len(waits) > 1 and min(waits) >= full / 2 and max(waits) <= full

    assert wait_s(CallFailed("x", is_passing=True, after_s=7.0), 0) >= 7.0
    assert wait_s(CallFailed("x", is_passing=True, after_s=0.0), 3) >= 2.0, "it hammers who wants no wait"


@pytest.mark.parametrize(
    "text",
    [KEY, f"a {KEY} b", "sk-proj-****f456", "key AIzaSyA1234567890 is bad", "Bearer gsk_abcdefghijk"],
)
def test_no_key_stays_in_a_text_of_a_provider(text: str) -> None:
    line = scrubbed(text, KEY)

    assert "[key]" in line
    assert not any(part in line for part in (KEY, "f456", "AIzaSy", "abcdefghijk"))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"error": {"message": "said so"}}, "400: said so"),
        ({"error": "said so"}, "400: said so"),
        ({"detail": "said so"}, "400: said so"),
        ({"message": "said so"}, "400: said so"),
        ([{"error": {"code": 400, "message": "said so"}}], "400: said so"),
        ("said so", "400: said so"),
        ({"error": {"code": "odd"}}, "400: odd"),
        ("<html>no words</html>", "400"),
        ({"error": [{"a": {"b": {}}}]}, "400"),
        (None, "400"),
    ],
)
def test_what_a_provider_says_is_found_in_each_of_the_usual_shapes(body: object, expected: str) -> None:
    refusal = Refusal(400, "")
    refusal.body = body

    assert failure_of(refusal, KEY, 0.0).message == expected


@pytest.mark.parametrize(
    ("code", "is_passing"), [(429, True), (502, True), (400, False), ("server_error", True)]
)
def test_an_error_in_a_stream_is_known_by_its_code(code: object, is_passing: bool) -> None:
    error = ValueError("in the stream")
    error.body = {"error": {"code": code, "message": f"said with {KEY}"}}  # type: ignore[attr-defined]  # as SDKs
    failure = failure_of(error, KEY, 0.0)

    assert (failure.message, failure.is_passing) == ("the response broke off: said with [key]", is_passing)


def test_an_error_of_ours_is_not_taken_for_a_lost_connection() -> None:
    assert not failure_of(KeyError("x"), KEY, 0.0).is_passing
    assert failure_of(ConnectionResetError("x"), KEY, 0.0).is_passing


# --- counting ------------------------------------------------------------------------------------


def test_anthropics_input_gets_the_caches_added() -> None:
    counted = {
        "input_tokens": 10,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 1000,
        "output_tokens": 5,
        "output_tokens_details": {"thinking_tokens": 3},
    }

    assert anthropic_usage(counted, "m") == Usage(
        input=1110, output=5, cache_read=100, cache_write=1000, reasoning=3, model="m"
    )


def test_openais_input_has_the_cache_in_it_already() -> None:
    counted = {
        "input_tokens": 1110,
        "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 1000},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 3},
    }
    chat = {
        "prompt_tokens": 1110,
        "prompt_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 1000},
        "completion_tokens": 5,
        "completion_tokens_details": {"reasoning_tokens": 3},
    }
    expected = Usage(input=1110, output=5, cache_read=100, cache_write=1000, reasoning=3, model="m")

    assert responses_usage(counted, "m") == chat_usage(chat, "m") == expected


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (400, "unknown field response_format", "response_format"),
        (400, "json_schema is not supported", "response_format"),
        (422, "stream_options: extra fields not permitted", "stream_options"),
        (400, "the model does not exist", ""),
        (500, "response_format broke me", ""),
    ],
)
def test_what_a_server_does_not_know_is_found_in_its_words(status: int, text: str, expected: str) -> None:
    wanted: dict[str, Any] = {"stream_options": {}, "response_format": {}}

    assert unsupported(Refusal(status, text), wanted) == expected


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("output_config", "output_config: Extra inputs are not permitted"),
        ("output_config", "'claude-3-haiku' does not support structured outputs"),
        ("text", "Invalid parameter: 'text.format' of type 'json_schema' is not supported with this model"),
    ],
)
def test_a_model_without_schemas_is_known_by_the_words_of_its_provider(option: str, text: str) -> None:
    assert unsupported(Refusal(400, text), {option: {}}) == option
    assert unsupported(Refusal(400, "prompt is too long: 200001 tokens"), {option: {}}) == ""


def test_the_key_of_a_provider_is_not_for_servers_that_only_speak_its_language() -> None:
    assert PROVIDERS["openai-compatible"].key_env == ""


def test_a_target_does_not_show_its_key() -> None:
    from csp.agents.api.providers import Target

    assert KEY not in repr(Target(provider="openai", model="m", key=KEY))


# --- the pane ------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_nothing_a_model_says_acts_on_the_terminal(size: int) -> None:
    text = "a \x1b[31mred\x1b[0m fox\x1b]0;title\x07 ran\x07 \x9b2J away\x1b[?25l.\n"
    shown: list[str] = []
    pane = ModelPane(shown.append)
    for at in range(0, len(text), size):
        pane.say(text[at : at + size])

    assert "".join(shown).replace("2J", "") == "a red fox ran  away.\n"
    assert "\x1b" not in "".join(shown)


def test_the_pane_shows_question_answer_and_price() -> None:
    shown: list[str] = []
    pane = ModelPane(shown.append)
    pane.ask(message("how are\nyou?"))
    pane.say("fine")
    pane.finish()
    pane.cost(Usage(input=1200, output=30, cost_usd=0.0045, model="m", cache_read=100), "genai-prices 1")

    cost = "1,130 new tokens (30 output), 100 cached; $0.004500 (genai-prices 1)"
    assert "".join(shown) == f"\n> human: how are you?\nfine\n  {cost}\n"
    assert [[run.text for run in row] for row in pane.screen().rows][2] == ["fine"]


def test_a_model_without_a_price_is_said_to_have_none() -> None:
    said = "3 new tokens (2 output), 0 cached; the price is unknown for m"
    assert cost_text(Usage(input=1, output=2, model="m"), None) == said
    assert "about" in cost_text(Usage(input=1, output=2, model="m", estimated=True), None)


def test_an_ask_tells_about_how_long_it_is() -> None:
    assert (
        ModelRequest(
            system="x" * 40, said=(ModelMessage(text="y" * 40), ModelMessage(text="z", by_model=True))
        ).tokens
        == 21
    )


def test_the_window_of_a_message_does_not_hold_the_message_itself() -> None:
    (only,) = ask_for(
        message("just this"), "", PROMPTS, [WindowItem(MessageId("m-9"), HUMAN, ALL, "just this")]
    ).said

    assert only.text.count("just this") == 1
