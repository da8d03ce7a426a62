"""The tests of the commands in agents' texts."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csp.room.agent_text import (
    MAX_GUESSES,
    Finish,
    HandOver,
    Misspelt,
    ModeRequest,
    Noop,
    QueryLog,
    SendTo,
    ShowMode,
    Spoken,
    Vote,
    Working,
    parse_commands,
    read_agent_text,
)
from csp.room.chat_markdown import MAX_LINES

HI = SendTo(to="codex", text="hi")
COMMANDS: dict[str, Spoken] = {
    "@send.codex hi": HI,
    "@send.codex-2 hi": SendTo(to="codex-2", text="hi"),
    "@send.Codex hi": HI,
    "@send.codex \t hi  ": HI,
    "@send.codex\thi": HI,
    "@send.human allstop": SendTo(to="human", text="allstop"),
    "@all hi": SendTo(to="all", text="hi"),
    "@all @all hi": SendTo(to="all", text="@all hi"),
    "@working": Working(),
    "@working still compiling": Working(note="still compiling"),
    "WORKING": Working(),
    "WORKING still compiling": Working(note="still compiling"),
    "@handoff.gemini look at it": HandOver(to="gemini", task="look at it"),
    "@handoff.gemini " + "x" * 500: HandOver(to="gemini", task="x" * 500),
    "@final": Finish(),
    "@final ": Finish(),
    "VOTE: [A]": Vote(label="A"),
    "VOTE:[b]": Vote(label="B"),
    "VOTE: [ AB ] ": Vote(label="AB"),
    "VOTE: [A] REASON: it is shorter": Vote(label="A", reason="it is shorter"),
    "@mode.set freeform": ModeRequest(mode="freeform"),
    '@mode.set debate "tabs or spaces"': ModeRequest(mode="debate", topic="tabs or spaces"),
    "@mode.set debate “tabs”": ModeRequest(mode="debate", topic="tabs"),
    '@mode.set round_robin "x" --rounds 3 --agents claude,Codex': ModeRequest(
        mode="round_robin", topic="x", rounds=3, agents=("claude", "codex")
    ),
    '@mode.set debate --agents a, "x"': ModeRequest(mode="debate", topic="x", agents=("a",)),
    "@mode.status": ShowMode(),
    "@query.log": QueryLog(),
    "@query.log 5": QueryLog(count=5),
    "@query.log 1000": QueryLog(count=1000),
    "NOOP": Noop(),
    "NOOP\t": Noop(),
}


@pytest.mark.parametrize(("line", "command"), COMMANDS.items())
def test_command_is_read(line: str, command: Spoken) -> None:
    assert parse_commands(line) == (command,)
    assert not read_agent_text(line).has_prose


@pytest.mark.parametrize(("line", "command"), COMMANDS.items())
@pytest.mark.parametrize(
    "before", ["Some prose.\n", "\n\n", "# Heading\n", "- item\n", "> quoted\n", "---\n"]
)
def test_command_is_read_below_anything(line: str, command: Spoken, before: str) -> None:
    assert parse_commands(before + line) == (command,)


PROSE = [
    "",
    " ",
    "hello",
    "@",
    "@@send.codex hi",
    "@claude said so",
    "@all-hands meeting",
    "@alligator",
    "@sendgrid is a service",
    "@sendgrid.com is a service",
    "@types/node is a package",
    "@sentry.io is a service",
    "@node.js is nice",
    "@finale was great",
    "@finals are over",
    "@workings of it",
    "@send",
    "@send.codex@example.com hi",
    "@send.codex/x hi",
    "@send.codex's text",
    "me@send.codex hi",
    "use @send.codex hi",
    " @send.codex hi",
    "\t@send.codex hi",
    "\ufeff@send.codex hi",
    "\u200b@send.codex hi",
    "\xa0@send.codex hi",
    "- @send.codex hi",
    "* @send.codex hi",
    "1. @send.codex hi",
    "> @send.codex hi",
    ">@send.codex hi",
    "`@send.codex hi`",
    "``@send.codex hi``",
    "**@send.codex hi**",
    "\\@send.codex hi",
    '"@send.codex hi"',
    "| @send.codex hi |",
    "# @all hi",
    "@\u2060send.codex hi",
    "@\u2060all hi",
    "@se\u2060nd.codex hi",
    "＠all hi",
    "WORKINGS of it",
    "WORKING: compiling",
    "Working on it",
    "working on it",
    "NOOP it is",
    "NOOPS",
    "noop",
    "VOTE: [A/B/C]",
    "VOTE: [A] or [B]",
    "VOTE: [ABC]",
    "VOTE: a great idea",
    "VOTE:",
    "**VOTE: [A]**",
    "REASON: none",
    "AGREE",
    "allstop",
    "Allstop!",
    "@send." + "x" * 41 + " hi",
    "@" + "a" * 300,
]


@pytest.mark.parametrize("text", PROSE)
def test_prose_is_no_command_not_even_a_misspelt_one(text: str) -> None:
    for beside in ("", "@final\n\n"):
        speech = read_agent_text(beside + text)

        assert speech.commands == ((Finish(),) if beside else ())
        assert speech.has_prose == bool(text.strip())


MISSES: dict[str, str] = {
    "@sned.codex hi": "@send.codex",
    "@sendd.codex hi": "@send.codex",
    "@snd.codex hi": "@send.codex",
    "@sent.codex hi": "@send.codex",
    "@Send.codex hi": "@send.codex",
    "@SEND.Codex hi": "@send.codex",
    "@send.codex: hi": "without the ':'",
    "@send.codex, hi": "without the ','",
    "@send.": "@send.<id>",
    "@send. hi": "@send.<id>",
    "@handoff. hi": "@handoff.<id>",
    "@send codex hi": "@send.codex",
    "@handoff codex hi": "@handoff.codex",
    "@hand-off.codex hi": "@handoff.codex",
    "@handof.codex hi": "@handoff.codex",
    "@send.codex": "@send.codex text",
    "@all": "@all text",
    "@All hi": "@all in lower case",
    "@ALL hi": "@all in lower case",
    "@all: hi": "@all without",
    "@all, please": "@all without",
    "@Working": "@working",
    "@worknig": "@working",
    "@Final": "@final",
    "@finl": "@final",
    "@final: done": "@final without",
    "@final and done": "on its own line",
    "@handoff.codex": "1 to 500",
    "@handoff.codex " + "x" * 501: "1 to 500",
    "@mode.state": "@mode.status",
    "@mode.status now": "on its own line",
    "@mode status": "@mode.status",
    "@mode set debate": "@mode.set",
    "@mode.set": "@mode.set <mode>",
    '@mode.set "topic"': "@mode.set <mode>",
    "@mode.set debate tabs or spaces": "@mode.set <mode>",
    '@mode.set debate "x" --rounds': "--rounds N",
    '@mode.set debate "x" --rounds 0': "--rounds N",
    '@mode.set debate "x" --rounds many': "--rounds N",
    '@mode.set debate "x" --agents': "--agents a,b",
    '@mode.set debate "x" --steps 3': "@mode.set <mode>",
    "@query.logs": "@query.log",
    "@query log 5": "@query.log",
    "@query.log 0": "1 to 1000",
    "@query.log 1001": "1 to 1000",
    "@query.log all": "1 to 1000",
    "VOTE: B": "VOTE: [A]",
    "Vote: [B]": "VOTE: [A]",
    "vote: b.": "VOTE: [A]",
}


@pytest.mark.parametrize(("line", "hint"), MISSES.items())
def test_near_miss_brings_a_hint(line: str, hint: str) -> None:
    (missed,) = parse_commands(line)

    assert isinstance(missed, Misspelt)
    assert hint in missed.hint
    assert missed.line[:59] == line[:59]
    assert len(missed.line) <= 60


def test_miss_that_names_somebody_says_whom() -> None:
    (named,) = parse_commands("@send Codex hi")
    (unnamed,) = parse_commands("@sned.codex hi")

    assert isinstance(named, Misspelt) and isinstance(unnamed, Misspelt)
    assert (named.to, unnamed.to) == ("codex", "")


def test_text_full_of_misses_brings_a_few() -> None:
    lines = ["@sned.codex hi"] * 200 + ["@all hi"]

    found = parse_commands("\n".join(lines))

    assert len(found) == MAX_GUESSES + 1
    assert found[-1] == SendTo(to="all", text="hi")


# --- bodies --------------------------------------------------------------------------------------

BODIES: dict[str, tuple[str, str]] = {
    "to the end": ("@all one\ntwo", "one\ntwo"),
    "to a blank line": ("@all one\ntwo\n\nthree", "one\ntwo"),
    "to a line of spaces": ("@all one\n \t \nthree", "one"),
    "from the next line": ("@all\none\ntwo", "one\ntwo"),
    "with its indentation": ("@all\n    one\n    two", "    one\n    two"),
    "through bullets": ("@all do:\n- one\n- two\n> three", "do:\n- one\n- two\n> three"),
    "with carriage returns": ("@all one\r\ntwo\r\n\r\nthree", "one\r\ntwo"),
    "through a fence": ("@all run\n```sh\na\n\n\nb\n```\nthen\n\nno", "run\n```sh\na\n\n\nb\n```\nthen"),
    "fence of tildes": ("@all run\n~~~\na\n\n```\n\n~~~\n\nno", "run\n~~~\na\n\n```\n\n~~~"),
    "fence at once": ("@all\n```\na\n\nb\n```", "```\na\n\nb\n```"),
    "fence with a command in it": (
        "@all run\n```\n@send.x hi\n\n@final\n```",
        "run\n```\n@send.x hi\n\n@final\n```",
    ),
    "fence that is not closed": ("@all run\n````\na\n```\n\n@send.x hi", "run\n````\na\n```\n\n@send.x hi"),
    "inline code": ("@all use `@final` now", "use `@final` now"),
}


@pytest.mark.parametrize(("text", "body"), BODIES.values(), ids=BODIES)
def test_body_runs(text: str, body: str) -> None:
    assert parse_commands(text)[0] == SendTo(to="all", text=body)
    assert len(parse_commands(text)) == 1


@pytest.mark.parametrize("line", [*COMMANDS, *MISSES])
def test_body_ends_at_the_next_command(line: str) -> None:
    first, *others = parse_commands(f"@send.codex hi\n{line}")

    assert first == HI
    assert len(others) == 1


@pytest.mark.parametrize(
    "line", ["@final", "NOOP", "WORKING on it", "@mode.status", "@query.log 5", "@sned.x hi"]
)
def test_line_after_a_command_without_a_body_is_prose(line: str) -> None:
    assert read_agent_text(f"{line}\nand so on").has_prose
    assert len(parse_commands(f"{line}\n@all hi")) == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("VOTE: [A]\nREASON: it is\nshorter\n\nBye.", "it is\nshorter"),
        ("VOTE: [A]\n\n\nREASON: it is\nshorter\n\nBye.", "it is\nshorter"),
        ("VOTE: [A]\n\n```\nREASON: it is\n```", ""),
        ("VOTE: [A]\nbecause I say so", ""),
        ("VOTE: [A]\n\n", ""),
        ("VOTE: [A]\n@final\nREASON: it is", ""),
    ],
)
def test_reason_of_a_vote(text: str, reason: str) -> None:
    assert parse_commands(text)[0] == Vote(label="A", reason=reason)


# --- code, quotes --------------------------------------------------------------------------------

HIDDEN = [
    "```\n@all hi\n```",
    "```sh\n@all hi\n```",
    "~~~\n@all hi\n~~~",
    "~~~ `x`\n@all hi\n~~~",
    "   ```\n@all hi\n   ```",
    "````\n```\n@all hi\n```\n````",
    "```\n~~~\n@all hi\n~~~\n```",
    "```\n@all hi\n``` not closed\n@all hi",
    "```\n@all hi\n    ```\n@all hi",
    "```\n@all hi",
    "~~~~\n@all hi\n~~~\n@all hi",
    "1. ```\n   @all hi\n   ```",
    "    @all hi",
    "text `\n@all hi\n` text",
    "text ``\n@all hi\nand ` too\n`` text",
    "`` ` ``and `\n@all hi`",
    "\\\\`\n@all hi`",
    "```\r\n@all hi\r\n```\r\n",
]


@pytest.mark.parametrize("text", HIDDEN)
def test_command_in_code_is_none(text: str) -> None:
    assert read_agent_text(text) == read_agent_text("prose")


SHOWN = [
    "```\nx\n```\n@all hi",
    "```\nx\n```  \n@all hi",
    "```\nx\n`````\n@all hi",
    "~~~\nx\n  ~~~~\n@all hi",
    "``` a`b\n@all hi",
    "```x```\n@all hi",
    "``\n@all hi",
    "    ```\n@all hi",
    "\t~~~\n@all hi",
    "- ```\n  x\n  ```\n@all hi",
    "- a\n\nb\n\n    ```\n@all hi",
    "- do\n\n      ```\n  x\n      ```\n\n@all hi",
    "text `x` and `y\n@all hi",
    "text `\n\n@all hi`",
    "text `` x `\n@all hi",
    "text \\`\n@all hi`",
    "# a ` b\n@all hi `",
    "- a `b\n- c` d\n@all hi",
    "a `b\n===\n@all hi `",
    "> a `b\n\n@all hi`",
    "\n".join(["`"] * 4) + "\n@all hi",
    # A line in the first column has left the list, and the fence in it with that.
    "- ```\n@all hi\n  ```",
    "- do\n\n      ```\n@all hi\n      ```",
    "- do\n\n\t```\n@all hi\n\t```",
    "> ```\n@all hi\n> ```",
]


@pytest.mark.parametrize("text", SHOWN)
def test_command_beside_code_is_one(text: str) -> None:
    (command,) = parse_commands(text)

    assert isinstance(command, SendTo) and command.text.startswith("hi")


# --- laws ----------------------------------------------------------------------------------------

PIECES = [
    *COMMANDS,
    *MISSES,
    *PROSE[:40],
    "```",
    "````",
    "~~~",
    "`",
    "``",
    "- ",
    "> ",
    "    ",
    "\t",
    "\r",
    "\\",
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=12).flatmap(
    lambda lines: st.sampled_from(["\n", "\n\n", "\r\n", ""]).map(lambda end: end.join(lines))
)


@given(TEXTS | st.text())
def test_any_text_is_read(text: str) -> None:
    speech = read_agent_text(text)

    assert speech.commands == parse_commands(text)
    assert speech.has_prose or speech.commands or not text.strip()


@given(TEXTS)
def test_nothing_in_a_fence_is_run(text: str) -> None:
    fence = "~" * 200

    assert parse_commands(f"{fence}\n{text}\n{fence}") == ()
    assert parse_commands(f"{fence}\n{text}\n{fence}\n@final")[-1:] == (Finish(),)


@given(TEXTS, st.sampled_from(["> ", "    ", "\t", "- ", "`"]))
def test_nothing_quoted_is_run(text: str, sign: str) -> None:
    quoted = "\n".join(sign + line for line in text.split("\n"))

    assert parse_commands(quoted) == ()
    assert parse_commands(f"@final\n\n{quoted}") == (Finish(),)


@given(TEXTS)
def test_nothing_relayed_is_run(text: str) -> None:
    relayed = text.replace("@", "@\u2060").replace("WORKING", "W").replace("NOOP", "N")

    for beside in ("", "@all\n\n"):
        found = parse_commands(beside + relayed)
        assert [command for command in found if not isinstance(command, Vote | Misspelt)] == []


@given(TEXTS)
def test_line_ends_make_no_difference(text: str) -> None:
    plain = text.replace("\r", "")
    kinds = [type(found) for found in parse_commands(plain)]

    assert [type(found) for found in parse_commands(plain.replace("\n", "\r\n"))] == kinds


@given(st.lists(st.tuples(st.sampled_from(list(COMMANDS)), st.sampled_from(["", "Prose.", "- item", "> q"]))))
def test_every_command_is_read_once_in_order(pairs: list[tuple[str, str]]) -> None:
    text = "\n\n".join(f"{prose}\n\n{line}" for line, prose in pairs)

    assert parse_commands(text) == tuple(COMMANDS[line] for line, _ in pairs)


# In one line 256 KiB are read in no time; of short lines fewer have to do.
ENDLESS = ["- ", " ", "\\`", "\\", "a", '"', "`" * 7 + "x", "a`\\", "1) ", "@send x ", "`", "~", '" ']
ENDLESS += ["@a\n", "@all x\n", "`\n", "\n", "```\n", "@mode.sxt\n", "@all ```\n", "VOTE: [A]\n\n", "> `\n"]
TICKS = "".join("`" * size + "\n" for size in range(1, 500))


def test_time_is_linear_in_the_length() -> None:
    """Each text takes a few tenths of a second; what grows with the square takes minutes."""
    for start in ("@all\n", "@mode.set x ", "@"):
        for piece in ENDLESS:
            size = 16 * 1024 if "\n" in piece else 256 * 1024
            started = time.process_time()
            parse_commands(start + piece * (size // len(piece)) + "\n@all hi")
            assert time.process_time() - started < 10, (start, piece)
    started = time.process_time()
    parse_commands(TICKS + "@all hi")
    assert time.process_time() - started < 10


# --- texts of very many lines --------------------------------------------------------------------


def test_behind_very_many_lines_no_command_begins() -> None:
    speech = read_agent_text("NOOP\n" * (MAX_LINES - 1) + "x\nNOOP\n")

    assert len(speech.commands) == MAX_LINES - 1
    assert speech.has_prose


def test_a_text_that_is_longer_than_all_lines_looked_at_is_sent_whole() -> None:
    body = "\n".join(f"line {number}" for number in range(MAX_LINES + 5))
    (sent,) = read_agent_text(f"@send.claude {body}\n\nmore").commands

    assert sent == SendTo(to="claude", text=body)


def test_very_many_blank_lines_are_no_prose() -> None:
    assert not read_agent_text("NOOP" + "\n" * (2 * MAX_LINES)).has_prose


def test_a_text_of_near_votes_is_not_guessed_at_for_ever() -> None:
    speech = read_agent_text("VOTE: A\n" * MAX_LINES)

    assert len(speech.commands) == MAX_GUESSES
    assert speech.has_prose
