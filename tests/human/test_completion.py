"""What is offered behind what was typed."""

import pytest
from prompt_toolkit.buffer import CompletionState
from prompt_toolkit.completion import CompleteEvent, Completion
from prompt_toolkit.document import Document

from csp.human.completion import LineCompleter, choices_row, common_start, completions
from csp.protocol.catalogue import COMMANDS
from csp.room.sessions.modes import mode_names

AGENTS = ["claude", "codex", "gemini"]


def offered(text: str) -> list[str]:
    return [choice for choice, _ in completions(text, AGENTS)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("hello", []),
        ("hello @c", []),
        ("@", ["@claude", "@codex", "@gemini", "@all", "@router"]),
        ("@C", ["@claude", "@codex"]),
        ("!g", ["!gemini"]),
        ("!r", []),
        ("@claude ", []),
        ("@claude @", ["@codex", "@gemini"]),
        ("@claude @co", ["@codex"]),
        ("@claude,co", ["@claude,codex"]),
        ("@claude,gemini @c", ["@codex"]),
        ("@claude hello @c", []),
        ("/layout ", ["top", "left", "focus"]),
        ("/layout l", ["left"]),
        ("@@c", []),
        ("//a", []),
        ("!!c", []),
        ("  @co", ["@codex"]),
        ("/pause c\n", []),
        ("/who", []),
        ("/mode debate --synth ge", ["gemini"]),
        ("/mode debate --agents codex,claude,c", []),
        ("/export a", []),
        ("/stop all ", []),
        ("@router debate ", AGENTS),
        ("@Router coll", ["collaborate"]),
        ("@claude {codex.last}{g", ["{codex.last}{gemini.last}"]),
        ("/age", ["/agents"]),
        ("/AGE", ["/agents"]),
        ("/nosuch c", []),
        ("/pause ", AGENTS),
        ("/pause ge", ["gemini"]),
        ("/pause gemini ", []),
        ("/fwd c", ["claude", "codex"]),
        ("/fwd claude ", [*AGENTS, "all"]),
        ("/fwd claude codex ", []),
        ("/mode de", ["debate"]),
        ("/mode debate --r", ["--rounds", "--respect-final", "--replace"]),
        ("/mode debate --rounds ", []),
        ("/mode debate --cost 2", []),
        ("/mode debate --rounds 2 --fi", ["--first"]),
        ("/mode ", mode_names()),
        ("/mode debate --agents ", AGENTS),
        ("/mode debate --agents codex,", ["codex,claude", "codex,gemini"]),
        ("/mode debate --agents codex,cl", ["codex,claude"]),
        ("/mode debate --first ", AGENTS),
        ("/mode debate --first co", ["codex"]),
        ("/help pa", ["pause"]),
        ("/stop ", ["all"]),
        ("/history g", ["gemini"]),
        ("/search c", []),
        ("@router coll", ["collaborate"]),
        ("@router collaborate co", ["codex"]),
        ("@claude see {co", ["{codex.last}"]),
        ("@claude see({c", ["see({claude.last}", "see({codex.last}"]),
        ("@claude {codex.last} ", []),
        ("@claude one\nline {g", ["{gemini.last}"]),
    ],
)
def test_what_fits_is_offered(text: str, expected: list[str]) -> None:
    assert offered(text) == expected


def test_every_command_is_offered_with_its_help() -> None:
    assert completions("/", AGENTS) == [(f"/{row.name}", row.help) for row in COMMANDS]


@pytest.mark.parametrize(
    ("words", "start"),
    [(["/pause"], "/pause"), (["/next", "/noshare"], "/n"), (["a", "b"], ""), (["ab", "a"], "a")],
)
def test_the_common_start_is_found(words: list[str], start: str) -> None:
    assert common_start(words) == start


def row(words: list[str], chosen: int | None = None, columns: int = 80, help: str = "") -> str:
    found = [Completion(word, display_meta=help) for word in words]
    state = CompletionState(Document(), found, complete_index=chosen)
    return "".join(text for _, text, *_ in choices_row(state, columns))


def test_the_row_of_choices_has_the_chosen_one_in_it() -> None:
    many = [f"@agent-{number:02d}" for number in range(30)]

    assert row(["@ada", "@bob"]) == "@ada  @bob  "
    assert row(["/agents"], help="list them") == "/agents  (list them)"
    assert row(["/add", "/agents"], help="what it does") == "/add  /agents  "
    assert row(["/add", "/agents"], 1, help="what it does") == "/add  /agents  (what it does)"
    assert row(many).startswith("@agent-00  @agent-01  ")
    assert row(many).endswith("  @agent-06  …") and len(row(many)) <= 80
    assert row(["/add", "/agents"], 1, columns=28, help="what it does") == "/add  /agents  (what it do…)"
    shown = row(many, 29)
    assert shown.startswith("… @agent-2") and len(shown) <= 80 and shown.endswith("@agent-29  ")


def test_the_chosen_one_stands_out() -> None:
    found = [Completion("@ada"), Completion("@bob")]
    row = choices_row(CompletionState(Document(), found, complete_index=1), 80)

    assert [(style, text) for style, text, *_ in row if text.strip()] == [
        ("", "@ada"),
        ("class:chosen", "@bob"),
    ]


def test_a_choice_takes_the_place_of_the_word_before_the_cursor() -> None:
    agents: list[str] = []
    completer = LineCompleter(lambda: agents)
    agents.append("claude")
    document = Document("/pause cl and more", cursor_position=9)
    (choice,) = completer.get_completions(document, CompleteEvent())
    assert (choice.text, choice.start_position) == ("claude", -2)
    (choice,) = completer.get_completions(Document("/agen"), CompleteEvent())

    assert choice.display_meta_text == "list the agents and their activity"
