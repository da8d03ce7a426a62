"""Whatever an agent answers is read as something."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csp.protocol.requests import Handoff
from csp.room.agent_text import Envelope, parse_commands

GO = Handoff(to="codex", task="go")


def read(text: str, *, is_required: bool = False) -> Envelope:
    return Envelope.parse(text, parse_commands(text), is_required=is_required)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"message": "hi"}', Envelope(message="hi")),
        (' {"message": "hi", "final": true}\n', Envelope(message="hi", final=True)),
        ('{"message": "hi", "handoff": {"to": "Codex", "task": "go"}}', Envelope(message="hi", handoff=GO)),
        (
            '{"message": "hi", "handoff": {"to": "codex", "task": "go"}, "final": true}',
            Envelope(message="hi", final=True),
        ),
        ('```json\n{"message": "hi"}\n```', Envelope(message="hi")),
        ('```\n{"message": "hi"}\n```', Envelope(message="hi")),
        ('Here you are:\n```json\n{"message": "hi"}\n```\nDone.', Envelope(message="hi")),
        ("done\n@handoff.codex go", Envelope(message="done\n@handoff.codex go", handoff=GO)),
        ("@handoff.a x\n@handoff.codex go", Envelope(message="@handoff.a x\n@handoff.codex go", handoff=GO)),
        ("done\n@final", Envelope(message="done\n@final", final=True)),
        ("@handoff.codex go\n@final", Envelope(message="@handoff.codex go\n@final", final=True)),
        ("just words", Envelope(message="just words")),
    ],
)
def test_reply_says_what_it_means(text: str, expected: Envelope) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *(
            '{"message": ""}',
            '{"message": 5}',
            '{"text": "hi"}',
            '{"message": "hi", "more": 1}',
            "{nonsense}",
        ),
        '{"message": "hi", "handoff": {"to": "codex"}}',
        '{"message": "hi", "handoff": {"to": "codex", "task": ""}}',
        '{"message": "hi", "handoff": {"to": "codex", "task": "' + "x" * 501 + '"}}',
        '{"message": "hi", "handoff": {"to": "codex", "task": "go", "why": "x"}}',
        '```json\n{"message": 5}\n```',
    ],
)
def test_envelope_of_the_wrong_shape_is_its_whole_text(text: str) -> None:
    assert read(text) == Envelope(message=text, malformed=True)


def test_words_are_malformed_only_where_an_envelope_is_required() -> None:
    assert read("just words", is_required=True) == Envelope(message="just words", malformed=True)


def test_two_fences_are_talk_about_envelopes() -> None:
    text = 'a\n```json\n{"message": "x"}\n```\nb\n```json\n{"message": "y"}\n```'

    assert read(text) == Envelope(message=text)


def test_task_may_have_500_characters() -> None:
    text = '{"message": "hi", "handoff": {"to": "codex", "task": "' + "x" * 500 + '"}}'

    assert read(text).handoff == Handoff(to="codex", task="x" * 500)


@given(st.text(alphabet='{}"`:,\nmesag ajson[]0', max_size=60))
def test_nothing_is_too_odd_to_be_read(text: str) -> None:
    assert read(text).message or not text


def test_json_without_end_is_read_in_good_time() -> None:
    assert read("{" * 100_000 + "}").malformed
