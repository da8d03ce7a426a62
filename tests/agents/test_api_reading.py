"""What is heard of a reply at its edges; most of it is in test_api_parts.py."""

import pytest

from csp.agents.api.reply_stream import Listener, without_nulls


@pytest.mark.parametrize("text", ['{"message":  "hi"}', '{"message": "h\\u00e4", "final": false}', "[null]"])
def test_a_reply_without_nulls_is_left_as_it_was_written(text: str) -> None:
    assert without_nulls(text) == text


def test_who_never_comes_to_a_message_is_not_heard_later() -> None:
    listener = Listener()
    assert listener.hear('{"thoughts": "' + "x" * 2000) == ""

    assert listener.hear('", "message": "late"}') == ""


@pytest.mark.parametrize(
    ("escaped", "said"),
    [
        (r"\ud83d\ude80!", "🚀!"),
        (r"\ud83d\ude80\ude80", "🚀�"),
        (r"\ud83d\u0041\ude80", "A�"),
    ],
)
def test_half_a_character_waits_for_its_other_half_once(escaped: str, said: str) -> None:
    assert Listener().hear(f'{{"message": "{escaped}"}}') == said
