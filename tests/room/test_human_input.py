"""What a typed line means."""

import pytest

from csp.errors import BadInput, NotFound, TooLarge
from csp.protocol.catalogue import COMMANDS
from csp.room.human_input import (
    MODE_USAGE,
    ROUTER_USAGE,
    CommandLine,
    EmptyLine,
    InvalidLine,
    MessageLine,
    ModeLine,
    SetTarget,
    StopLine,
    TypedLine,
    doubt_about,
    forwarded,
    insert_last_messages,
    is_allstop,
    mode_fields,
    only_asker,
    question_before_sending,
    quoted_agents,
    read_arguments,
    read_line,
    replace_question,
    unknown_quote,
)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("", EmptyLine()),
        ("  \n ", EmptyLine()),
        ("hello", MessageLine(text="hello")),
        ("  hello there \n", MessageLine(text="hello there")),
        ("one\n\n  two", MessageLine(text="one\n\n  two")),
        ("@claude fix the parser", MessageLine(to="claude", text="fix the parser")),
        ("@Claude: fix it", MessageLine(to="claude", text="fix it")),
        ("@claude, fix it", MessageLine(to="claude", text="fix it")),
        ("@claude\nline one\nline two", MessageLine(to="claude", text="line one\nline two")),
        ("@all hello", MessageLine(to="all", text="hello")),
        ("@all stop", MessageLine(to="all", text="stop")),
        ("@claude-2 @codex is right", MessageLine(to="claude-2,codex", text="is right")),
        ("@ada,bob both?", MessageLine(to="ada,bob", text="both?")),
        ("@ada, @Bob: both?", MessageLine(to="ada,bob", text="both?")),
        ("!ada !bob stop", MessageLine(to="ada,bob", text="stop", urgent=True)),
        ("@ada @all hello", MessageLine(to="all", text="hello")),
        ("@ada @ada hello", MessageLine(to="ada", text="hello")),
        ("@ada, please look", MessageLine(to="ada", text="please look")),
        ("@ada @bob.com is down", MessageLine(to="ada", text="@bob.com is down")),
        ("@ada @bob", SetTarget(to="ada,bob")),
        ("!codex stop that", MessageLine(to="codex", text="stop that", urgent=True)),
        ("@codex", SetTarget(to="codex")),
        ("@all", SetTarget(to="all")),
        ("!codex", InvalidLine(problem="nothing to send", hint="for example: !codex stop")),
    ],
)
def test_a_text_goes_to_whom_its_first_word_names(line: str, meant: TypedLine) -> None:
    assert read_line(line) == meant


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("//etc/passwd is gone", "/etc/passwd is gone"),
        ("@@claude is a name", "@claude is a name"),
        ("!!", "!"),
        ("!= is not equal", "!= is not equal"),
        ("@types/node is broken", "@types/node is broken"),
        ("@claude's idea is good", "@claude's idea is good"),
        ("@" + "a" * 33 + " text", "@" + "a" * 33 + " text"),
    ],
)
def test_what_is_no_address_is_text(line: str, text: str) -> None:
    assert read_line(line) == MessageLine(text=text)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("/agents", CommandLine(name="agents")),
        ("/HELP  mode ", CommandLine(name="help", rest="mode")),
        ("/search two words", CommandLine(name="search", rest="two words")),
        ("/fwd a b note\nmore", CommandLine(name="fwd", rest="a b note\nmore")),
        ("/mode", CommandLine(name="mode")),
        ("/nosuch thing", CommandLine(name="nosuch", rest="thing")),
    ],
)
def test_a_slash_begins_a_command(line: str, meant: TypedLine) -> None:
    assert read_line(line) == meant


@pytest.mark.parametrize("line", ["/", "/etc/passwd is gone", "/2"])
def test_a_slash_before_something_else_is_no_command(line: str) -> None:
    meant = read_line(line)

    assert isinstance(meant, InvalidLine)
    assert meant.hint == f"to send it as a text, type /{line.split()[0]}"


@pytest.mark.parametrize(
    "line",
    [
        *("allstop", "Allstop", "ALL-STOP!", "all stop", " a l l s t o p ", "All\nStop.", "allstop 2"),
        *("allstop \u505c\u6b62", "allstop" + "!" * 93),
        *("@claude allstop", "@all ALL STOP", "@router allstop", "!codex allstop", "@allstop", "/allstop"),
    ],
)
def test_allstop_is_heard_in_any_spelling(line: str) -> None:
    assert read_line(line) == StopLine()


@pytest.mark.parametrize(
    "text", ["asphalt", "the all stops train", "allstöp", "all stop now", "stop", "", "allstop" + "!" * 94]
)
def test_other_words_stop_nothing(text: str) -> None:
    assert not is_allstop(text)
    assert read_line(text) != StopLine()


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("/mode debate", ModeLine(mode="debate")),
        ('/mode Debate "tabs or spaces"', ModeLine(mode="debate", topic="tabs or spaces")),
        ("/mode debate tabs or spaces?", ModeLine(mode="debate", topic="tabs or spaces?")),
        ("/mode debate “tabs or spaces”", ModeLine(mode="debate", topic="tabs or spaces")),
        ("/mode debate don't say 'tabs'", ModeLine(mode="debate", topic="don't say 'tabs'")),
        ('/mode debate is "tabs" right', ModeLine(mode="debate", topic='is "tabs" right')),
        ('/mode debate "a\nb"', ModeLine(mode="debate", topic="a\nb")),
        ('/mode debate an "open quote', ModeLine(mode="debate", topic='an "open quote')),
        (
            '/mode debate "is --rounds 3 too much" --rounds 2',
            ModeLine(mode="debate", topic="is --rounds 3 too much", numbers={"rounds": 2}),
        ),
        (
            "/mode debate --rounds=2 tabs --agents @A,b --first B or spaces --synth a",
            ModeLine(
                mode="debate",
                topic="tabs or spaces",
                agents=("a", "b"),
                numbers={"rounds": 2},
                names={"first": "b", "synth": "a"},
            ),
        ),
        (
            '/mode round_robin go --steps 4 --agents "a, b"',
            ModeLine(mode="round_robin", topic="go", agents=("a", "b"), numbers={"steps": 4}),
        ),
        (
            "/mode debate --ballot tabs --respect-final",
            ModeLine(mode="debate", topic="tabs", flags=("ballot", "respect-final")),
        ),
        ('/mode debate tabs --agents ""', ModeLine(mode="debate", topic="tabs", agents=())),
        ("/mode debate\ntabs or\nspaces", ModeLine(mode="debate", topic="tabs or\nspaces")),
        ("/mode freeform", ModeLine(mode="freeform")),
        (
            "/mode autopilot go --turns 9 --cost 0.5",
            ModeLine(mode="autopilot", topic="go", limits={"turns": 9.0, "cost": 0.5}),
        ),
        (
            "/mode autopilot go --on-limit Wait --on-hard-limit=ask",
            ModeLine(mode="autopilot", topic="go", choices={"on-limit": "wait", "on-hard-limit": "ask"}),
        ),
        (
            "/mode autopilot go --on-limit never",
            InvalidLine(
                problem="--on-limit: unknown value 'never'", hint="expected one of: wait, skip, stop"
            ),
        ),
    ],
)
def test_a_mode_is_read_with_its_options(line: str, meant: TypedLine) -> None:
    assert read_line(line) == meant


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("/mode debate x --rounds", "expected a value after --rounds"),
        ("/mode debate x --agents --rounds 2", "expected a value after --agents"),
        ("/mode debate x --rounds two", "--rounds: expected a whole number, got 'two'"),
        ("/mode debate x --steps -1", "--steps: expected a whole number, got '-1'"),
        ("/mode autopilot x --cost much", "--cost: expected a number, got 'much'"),
    ],
)
def test_a_wrong_option_is_named(line: str, problem: str) -> None:
    meant = read_line(line)

    assert isinstance(meant, InvalidLine)
    assert meant.problem.startswith(problem)
    assert meant.hint == MODE_USAGE


def test_an_unknown_option_brings_the_nearest_or_all() -> None:
    assert read_line("/mode debate x --rouns 2") == InvalidLine(
        problem="unknown option --rouns", hint="did you mean '--rounds'?"
    )
    meant = read_line("/mode debate x --colour blue")
    assert isinstance(meant, InvalidLine)
    assert meant.hint.startswith("there are: --rounds, --steps, --agents, ")


@pytest.mark.parametrize("sign", ["@", "!", " @ "])
def test_a_sign_without_a_name_is_no_text(sign: str) -> None:
    meant = read_line(sign)

    assert isinstance(meant, InvalidLine)
    assert meant.problem.startswith(("name missing after @", "name missing after !"))


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        (
            "@router collaborate gpt claude: build a parser: now",
            ModeLine(mode="collaborate", topic="build a parser: now", agents=("gpt", "claude")),
        ),
        (
            "@Router Autopilot @gpt, @claude:\nline one\nline two",
            ModeLine(mode="autopilot", topic="line one\nline two", agents=("gpt", "claude")),
        ),
        ("@router collaborate: the goal", ModeLine(mode="collaborate", topic="the goal")),
    ],
)
def test_the_router_begins_a_mode(line: str, meant: TypedLine) -> None:
    assert read_line(line) == meant


@pytest.mark.parametrize(
    "line", ["@router", "@router collaborate a b", "@router collaborate a b:", "@router : x"]
)
def test_the_router_says_how_it_is_used(line: str) -> None:
    meant = read_line(line)

    assert isinstance(meant, InvalidLine)
    assert meant.hint == ROUTER_USAGE


def test_the_last_words_of_agents_are_put_in() -> None:
    text = "compare {codex.last} with {Claude.last}, {codex.last} and {nobody.last} or {x}"

    assert quoted_agents(text) == ("codex", "claude", "nobody")
    assert (
        insert_last_messages(text, {"codex": "{claude.last}", "claude": "B"})
        == "compare {claude.last} with B, {claude.last} and {nobody.last} or {x}"
    )


def test_a_message_that_is_quoted_too_often_is_refused_before_it_is_put_in() -> None:
    said = {"ada": "x" * 1000}

    assert len(insert_last_messages("{ada.last}" * 262, said)) == 262_000
    with pytest.raises(TooLarge, match="what ada said is over 262144 bytes"):
        insert_last_messages("{ada.last}" * 263, said)


def test_questions_name_what_they_are_about() -> None:
    assert replace_question("round_robin") == "Round robin mode is running. Stop it and start the new one?"


def test_an_unknown_quotation_says_how_to_send_the_braces() -> None:
    as_text = "to send the braces as text, double them: {{adda.last}}"
    error = unknown_quote("adda", "did you mean 'ada'?")

    assert (error.message, error.hint) == (
        "unknown agent in '{adda.last}'",
        f"did you mean 'ada'?; {as_text}",
    )
    assert unknown_quote("adda", "").hint == as_text


def test_doubled_braces_are_text() -> None:
    text = "write {{ada.last}} or {{bob.last}}, see {ada.last}"

    assert quoted_agents(text) == ("ada",)
    assert (
        insert_last_messages(text, {"ada": "{{x.last}}"}) == "write {ada.last} or {bob.last}, see {{x.last}}"
    )


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("quit", "/quit"),
        (" EXIT ", "/quit"),
        ("help", "/help"),
        ("?", "/help"),
        ("csp down --all", "/down, or in a shell: csp down --all"),
        ("csp", ""),
        ("help me", ""),
        ("@ada help", ""),
        ("csp down\nis what I typed", ""),
        ("what is csp?", ""),
    ],
)
def test_what_was_hardly_meant_for_agents_is_asked_about(line: str, instead: str) -> None:
    meant = read_line(line)
    assert isinstance(meant, MessageLine)

    assert doubt_about(meant) == instead
    if instead:
        question = f"Send {line.strip()!r} to ada, bob? (type {instead})"
        assert question_before_sending(meant, "ada,bob") == question


@pytest.mark.parametrize(
    ("line", "needs_topic", "replaces"),
    [
        ("/mode debate", True, False),
        ("/mode debate --replace", True, True),
        ("/mode debate --rounds 2 tabs", False, False),
        ("/mode freeform", False, False),
    ],
)
def test_a_mode_says_what_has_to_be_asked(line: str, needs_topic: bool, replaces: bool) -> None:
    meant = read_line(line)
    assert isinstance(meant, ModeLine)

    assert (meant.needs_topic, meant.replaces) == (needs_topic, replaces)
    assert "replace" not in mode_fields(meant)


@pytest.mark.parametrize(
    ("asking", "problem"),
    [((), "no dialog is open"), (("ada", "bob"), "several dialogs are open: ada, bob")],
)
def test_only_one_who_asks_needs_no_name(asking: tuple[str, ...], problem: str) -> None:
    assert only_asker(("ada",)) == "ada"
    with pytest.raises((BadInput, NotFound), match=problem):
        only_asker(asking)


def test_what_is_forwarded_is_marked_as_a_quotation() -> None:
    assert forwarded("codex", "one\n\ntwo", "check this") == "check this\n\ncodex said:\n> one\n>\n> two"
    assert forwarded("codex", "one") == "codex said:\n> one"


# --- commands ------------------------------------------------------------------------------------


def arguments(line: str) -> list[str]:
    command = read_line(line)
    assert isinstance(command, CommandLine)
    return read_arguments(next(row for row in COMMANDS if row.name == command.name), command.rest)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/next", []),
        ("/pause", []),
        ("/approve ada 2", ["ada", "2"]),
        ("/approve 2", ["", "2"]),
        ("/deny", []),
        ("/fwd ada bob a note  of words", ["ada", "bob", "a note  of words"]),
        ("/search two words", ["two words"]),
        ("/extend", []),
    ],
)
def test_the_arguments_of_a_command(line: str, words: list[str]) -> None:
    assert arguments(line) == words


@pytest.mark.parametrize(
    ("line", "problem", "hint"),
    [
        ("/next now", "unexpected argument 'now'", "usage: /next"),
        ("/interrupt", "which agent?", "usage: /interrupt AGENT"),
        ("/allow", "which agent?", "usage: /allow AGENT COMMAND"),
        ("/allow claude", "missing argument", "usage: /allow AGENT COMMAND"),
        ("/deny claude two", "expected a number, got 'two'", "usage: /deny [AGENT] [N]"),
        ("/search", "missing argument", "usage: /search TEXT"),
        ("/extend two", "expected a number, got 'two'", "usage: /extend [N]"),
        ("/extend 1234567", "expected a number, got '1234567'", "usage: /extend [N]"),
    ],
)
def test_wrong_arguments_are_refused_with_the_form(line: str, problem: str, hint: str) -> None:
    with pytest.raises(BadInput) as refused:
        arguments(line)

    assert (refused.value.message, refused.value.hint) == (problem, hint)


def test_a_mode_line_is_the_body_that_begins_it() -> None:
    line = read_line(
        '/mode autopilot "go" --agents A,b --turns 9 --cost 0.5 --first b --respect-final --rounds 2 '
        "--on-limit stop"
    )
    assert isinstance(line, ModeLine)

    assert mode_fields(line) == {
        "mode": "autopilot",
        "rounds": 2,
        "first": "b",
        "respect_final": True,
        "on_limit": "stop",
        "topic": "go",
        "agents": ["a", "b"],
        "limits": {"turns": 9, "cost": 0.5},
    }
    assert mode_fields(ModeLine(mode="debate")) == {"mode": "debate"}
