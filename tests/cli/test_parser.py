"""The command line: verbs, arguments, what is misused."""

import re
import shlex

import pytest

from csp.cli.arguments import Arg
from csp.cli.parser import parse, setting_flags, verb_parser
from csp.cli.verbs import VERBS, Verb
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


def test_a_missing_argument_names_the_help_of_the_verb() -> None:
    error = misuse("pause")

    assert "agent" in error.message.lower()
    assert error.hint == "see: csp pause --help"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["send", "a", "b", "--timeout", "soon"],
            "argument --timeout: expected a number greater than 0, got 'soon'",
        ),
        (["history", "--limit", "0"], "argument --limit: expected a whole number from 1, got '0'"),
        (["send", "a", "b", "--wiat"], "unrecognized arguments: --wiat"),
        (["send", "a", "b", "--wai"], "unrecognized arguments: --wai"),
    ],
)
def test_a_wrong_argument_is_quoted(argv: list[str], message: str) -> None:
    assert misuse(*argv).message == message


def test_bytes_that_are_no_text_are_refused() -> None:
    assert misuse("send", "claude", "caf\udce9").message == "expected arguments in UTF-8, got 'caf\\udce9'"


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_the_help_of_a_verb_shows_its_examples(verb: Verb, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse([verb.name, "--help"])

    out = capsys.readouterr().out
    assert caught.value.code == 0
    assert "example:\n  csp " in out
    assert all(f"\n  {example.format(verb=verb.name)}\n" in out for example in verb.load().examples)
    assert "--room" in out


def test_the_help_lists_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"])

    out = capsys.readouterr().out
    assert all(f"\n  {verb.name} " in out for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_the_examples_of_a_verb_can_be_parsed(verb: Verb) -> None:
    for example in verb.load().examples:
        words = shlex.split(example.format(verb=verb.name).partition(" > ")[0])

        found, _ = parse(words[1:])
        assert found == verb


STATED = [
    (verb, arg)
    for verb in VERBS
    for arg in verb.load().args
    if re.search(r"default: \d+$", arg.help) and "default" in arg.options
]


@pytest.mark.parametrize(("verb", "arg"), STATED, ids=[f"{verb.name} {arg.name}" for verb, arg in STATED])
def test_the_default_is_the_one_that_the_help_states(verb: Verb, arg: Arg) -> None:
    stated = float(arg.help.rpartition("default: ")[2])

    assert verb_parser(verb).get_default(arg.name.lstrip("-").replace("-", "_")) == stated


def test_defaults_are_stated_for_what_waits_or_is_cut() -> None:
    assert {(verb.name, arg.name) for verb, arg in STATED} == {
        ("replay", "--speed"),
        ("logs", "--limit"),
        ("agent", "--timeout"),
        ("send", "--timeout"),
        ("collaborate", "--timeout"),
    }


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_switch_is_off_until_it_is_given(verb: Verb) -> None:
    for arg in verb.load().args:
        if arg.options.get("action") == "store_true":
            assert verb_parser(verb).get_default(arg.name[2:].replace("-", "_")) is False


@pytest.mark.parametrize("argv", [["--verbose", "agents"], ["agents", "--verbose"]])
def test_verbose_may_stand_before_or_behind_the_verb(argv: list[str]) -> None:
    _, args = parse(argv)

    assert args.verbose is True
    assert (args.verb, args.json) == ("agents", False)


def test_flags_of_settings_reach_their_settings() -> None:
    words = ["--host", "h", "--port", "7", "--history", "/h", "--durability", "none", "--room", "den"]
    _, args = parse(["gateway", *words])
    given = {name: value for name, value in setting_flags(args).items() if value is not None}

    assert given == {"host": "h", "port": "7", "history_dir": "/h", "durability": "none", "room": "den"}


@pytest.mark.parametrize(
    ("verb", "problem"),
    [
        (["approve", "a", "--choice", "0"], "--choice"),
        (["replay", "--speed", "-1"], "--speed"),
        (["review", "--max-revisions", "-1"], "--max-revisions"),
        (["review", "--on-accept", "merge"], "--on-accept"),
        (["board", "--kind", "odd"], "--kind"),
        (["export", "--format", "xml"], "--format"),
        (["agent", "--name", "a", "--provider", "p"], "--model"),
        (["sidecar", "--", "claude"], "--name"),
        (["completion", "tcsh"], "tcsh"),
    ],
)
def test_a_value_that_nobody_understands_is_refused(verb: list[str], problem: str) -> None:
    assert problem in misuse(*verb).message


def test_long_argument_is_not_repeated_whole_in_an_error() -> None:
    with pytest.raises(BadInput) as caught:
        parse(["send", "ada", "-" * 100_000])

    assert caught.value.message.startswith("unrecognized arguments: -----")
    assert len(caught.value.message) < 400
