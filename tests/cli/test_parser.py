"""The command line: verbs, arguments, what is misused."""

import pytest

from csp.cli.parser import parse, setting_flags
from csp.cli.verbs import VERBS
from csp.errors import BadInput


def misuse(*argv: str) -> BadInput:
    with pytest.raises(BadInput) as caught:
        parse(argv)
    return caught.value


def test_text_may_stand_on_both_sides_of_a_flag() -> None:
    _, args = parse(["send", "claude", "hello", "--wait", "world"])

    assert (args.target, args.text, args.wait) == ("claude", ["hello", "world"], True)


def test_text_behind_two_dashes_may_look_like_a_flag() -> None:
    _, args = parse(["send", "claude", "--", "--wait", "-x"])

    assert (args.text, args.wait) == (["--wait", "-x"], False)


@pytest.mark.parametrize(
    "argv", [["--room", "a", "agents"], ["agents", "--room", "a"], ["--room", "b", "agents", "--room", "a"]]
)
def test_the_room_may_stand_before_or_behind_the_verb(argv: list[str]) -> None:
    _, args = parse(argv)

    assert setting_flags(args)["room"] == "a"


def test_flags_that_were_not_given_leave_the_setting_alone() -> None:
    _, args = parse(["gateway"])

    assert set(setting_flags(args).values()) == {None}


def test_an_unknown_verb_brings_the_nearest() -> None:
    error = misuse("snd", "claude", "hi")

    assert (error.message, error.hint) == ("unknown verb 'snd'", "did you mean 'send'?")


def test_no_verb_is_a_misuse() -> None:
    assert misuse().hint == "see: csp --help"


def test_a_missing_argument_names_the_help_of_the_verb() -> None:
    error = misuse("pause")

    assert "agent" in error.message.lower()
    assert error.hint == "see: csp pause --help"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["send", "a", "b", "--timeout", "soon"], "argument --timeout: expected a number over 0, got 'soon'"),
        (["history", "--limit", "0"], "argument --limit: expected a whole number from 1, got '0'"),
        (["send", "a", "b", "--wiat"], "unrecognized arguments: --wiat"),
        (["send", "a", "b", "--wai"], "unrecognized arguments: --wai"),
    ],
)
def test_a_wrong_argument_is_quoted(argv: list[str], message: str) -> None:
    assert misuse(*argv).message == message


def test_bytes_that_are_no_text_are_refused() -> None:
    assert misuse("send", "claude", "caf\udce9").message == "expected arguments in utf-8, got 'caf\\udce9'"


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_the_help_of_a_verb_shows_its_example(
    verb: object, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    row = next(row for row in VERBS if row == verb)
    with pytest.raises(SystemExit) as caught:
        parse([row.name, "--help"])

    out = capsys.readouterr().out
    assert caught.value.code == 0
    assert f"example:\n  {row.example}" in out
    assert "--room" in out


def test_the_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"])

    out = capsys.readouterr().out
    assert all(f"\n  {verb.name} " in out for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_the_example_of_a_verb_can_be_parsed(verb: object) -> None:
    import shlex

    row = next(row for row in VERBS if row == verb)
    for line in row.example.splitlines():
        words = shlex.split(line.partition(" > ")[0])

        found, _ = parse(words[1:])
        assert found == row
