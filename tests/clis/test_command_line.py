"""How the command line of a CLI is read and changed."""

import pytest

from csp.clis.command_line import chosen_session, is_uuid, option_names, plain_words, without_options

ONE = "11111111-2222-4333-8444-555555555555"
TWO = "AAAAAAAA-2222-4333-8444-555555555555"
FLAGS = ("--session-id", "-r", "--resume", "-c", "--continue", "--fork-session")


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("claude", set()),
        ("claude -p --model=opus word --x y", {"-p", "--model", "--x"}),
        ("claude -p -- --model", {"-p"}),
        ("-claude word", set()),
    ],
)
def test_options_have_names_up_to_the_double_dash(line: str, names: set[str]) -> None:
    assert option_names(line.split()) == names


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("codex", []),
        ("codex exec go", ["exec", "go"]),
        ("codex -m opus exec", ["exec"]),
        ("codex --json exec -m", ["exec"]),
        ("codex --model=opus exec", ["exec"]),
        ("codex exec -- more", ["exec"]),
    ],
)
def test_words_are_neither_options_nor_their_values(line: str, words: list[str]) -> None:
    assert plain_words(line.split(), {"-m", "--model"}) == words


@pytest.mark.parametrize(
    ("line", "kept", "values"),
    [
        ("claude --resume a b", "claude b", ["a"]),
        ("claude b --resume", "claude b", []),
        ("claude --resume=a b", "claude b", ["a"]),
        ("claude --resume --model x", "claude --model x", []),
        ("claude -r a --resume b c", "claude c", ["a", "b"]),
        ("claude --resumed a", "claude --resumed a", []),
        ("claude -r a -- -r b", "claude -- -r b", ["a"]),
        ("-r a", "-r a", []),
    ],
)
def test_options_are_taken_away_with_their_values(line: str, kept: str, values: list[str]) -> None:
    assert without_options(line.split(), ("-r", "--resume")) == (kept.split(), values)


@pytest.mark.parametrize(
    ("line", "session"),
    [
        ("claude", None),
        (f"claude word {ONE}", None),
        (f"claude --resume {ONE}", ONE),
        (f"claude --resume={ONE}", ONE),
        (f"claude -r {ONE} --session-id {TWO}", TWO),
        ("claude --resume a-name", ""),
        ("claude --continue", ""),
        (f"claude --resume {ONE} --fork-session", ""),
        (f"claude --resume {ONE} --fork-session --session-id {TWO}", TWO),
        (f"claude -- --resume {ONE}", None),
    ],
)
def test_a_session_that_was_chosen_has_its_id_where_it_is_known(line: str, session: str | None) -> None:
    assert chosen_session(line.split(), FLAGS) == session


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        (ONE, True),
        (TWO, True),
        (ONE[:-1], False),
        (f"{ONE}0", False),
        (ONE.replace("1", "g"), False),
        ("", False),
    ],
)
def test_a_uuid_is_known_by_its_form(text: str, is_one: bool) -> None:
    assert is_uuid(text) is is_one
