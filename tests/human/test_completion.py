"""What is offered behind what was typed."""

import pytest

from csp.human.commands import ROWS
from csp.human.completion import common_start, completions

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
        ("@@c", []),
        ("//a", []),
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
        ("/mode debate --r", ["--rounds", "--respect-final"]),
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
    assert completions("/", AGENTS) == [(f"/{row.name}", row.help) for row in ROWS]


@pytest.mark.parametrize(
    ("words", "start"),
    [(["/pause"], "/pause"), (["/next", "/noshare"], "/n"), (["a", "b"], ""), (["ab", "a"], "a")],
)
def test_the_common_start_is_found(words: list[str], start: str) -> None:
    assert common_start(words) == start
