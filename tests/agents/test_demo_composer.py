"""How a draft is edited in a demo agent's pane."""

import pytest

from csp.agents.demo.composer import REMEMBERED, Composer
from csp.agents.demo.key_decoder import Key, Text


def composed(text: str, *keys: str) -> Composer:
    """Type a text, in which | is where the cursor goes; then press keys."""
    composer = Composer()
    composer.take(Text(text.replace("|", "")))
    composer.cursor = text.index("|") if "|" in text else len(text)
    for key in keys:
        assert composer.take(Key(key)), key
    return composer


@pytest.mark.parametrize(
    ("before", "keys", "after"),
    [
        ("ab|c", ["backspace"], "a|c"),
        ("|abc", ["backspace"], "|abc"),
        ("a|bc", ["delete"], "a|c"),
        ("abc|", ["delete"], "abc|"),
        ("|abc", ["left"], "|abc"),
        ("abc|", ["right"], "abc|"),
        ("a|bc", ["right", "right"], "abc|"),
        ("x\nab|c\ny", ["home"], "x\n|abc\ny"),
        ("x\nab|c\ny", ["end"], "x\nabc|\ny"),
        ("x\nab|c\ny", ["ctrl-u"], "|c\ny"),
        ("x\nab|c\ny", ["ctrl-k"], "x\nab|\ny"),
        ("one two  |x", ["ctrl-w"], "one |x"),
        ("one\ntwo|", ["ctrl-w"], "one\n|"),
        ("one|", ["ctrl-w"], "|"),
        ("a|c", ["newline"], "a\n|c"),
        ("abc\nde|f", ["up"], "ab|c\ndef"),
        ("a\ndef|", ["up"], "a|\ndef"),
        ("x\nabc\nde|f", ["up"], "x\nab|c\ndef"),
        ("ab|c\ndef\ng", ["down"], "abc\nde|f\ng"),
        ("abc|\nd\nefg", ["down"], "abc\nd|\nefg"),
        ("abc|\nd", ["down"], "abc\nd|"),
    ],
)
def test_each_key_edits_at_the_cursor(before: str, keys: list[str], after: str) -> None:
    composer = composed(before, *keys)

    assert composer.text[: composer.cursor] + "|" + composer.text[composer.cursor :] == after


def test_text_goes_in_at_the_cursor_without_what_acts_on_a_terminal() -> None:
    composer = composed("a|b")
    composer.take(Text("1\n\t2\x1b\x07\x7f\x85\x9b\x00é"))

    assert (composer.text, composer.cursor) == ("a1\n\t2éb", 6)


def test_other_keys_are_none_of_its_business() -> None:
    assert not Composer().take(Key("enter"))
    assert not Composer().take(Key("escape"))


def test_a_sent_draft_is_gone_and_can_be_brought_back() -> None:
    composer = Composer()
    for text in ("one", " ", "two"):
        composer.take(Text(text))
        assert composer.send() == text
        assert (composer.text, composer.cursor) == ("", 0)

    shown = []
    for key in ("up", "up", "up", "down", "down", "down"):
        composer.take(Key(key))
        shown.append((composer.text, composer.cursor))
    assert shown == [("two", 3), ("one", 3), ("one", 3), ("two", 3), ("", 0), ("", 0)]


def test_what_was_sent_never_takes_the_place_of_a_draft() -> None:
    composer = composed("one")
    composer.send()
    composer.take(Text("mine"))
    composer.take(Key("up"))
    assert composer.text == "mine"

    composer.clear()
    composer.take(Key("up"))
    composer.take(Text("!"))
    composer.take(Key("up"))
    assert composer.text == "one!"


def test_after_a_recalled_one_was_sent_the_newest_comes_first_again() -> None:
    composer = Composer()
    for text in ("one", "two"):
        composer.take(Text(text))
        composer.send()
    composer.take(Key("up"))
    composer.take(Key("up"))
    assert composer.send() == "one"
    composer.take(Text("three"))
    composer.send()
    composer.take(Key("up"))

    assert composer.text == "three"


def test_the_newest_fifty_are_remembered() -> None:
    composer = Composer()
    for number in range(REMEMBERED + 5):
        composer.take(Text(str(number)))
        composer.send()
    for _ in range(REMEMBERED + 5):
        composer.take(Key("up"))

    assert (REMEMBERED, composer.text) == (50, "5")
