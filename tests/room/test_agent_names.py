"""The tests of names and ids."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csp.errors import BadInput
from csp.protocol.enums import AgentId, JoinRole
from csp.room.agent_names import MAX_ID, nearest, numbered, to_id

NAME_TO_ID = {
    "claude": "claude",
    "Claude": "claude",
    "  Claude Code!  ": "claude-code",
    "claude_3.5": "claude-3-5",
    "claude--code": "claude-code",
    "--claude--": "claude",
    "claude\n": "claude",
    "../claude": "claude",
    "7": "7",
    "Ünal": "nal",
    "naïve": "na-ve",
    "日本 claude": "claude",
    "İzmir": "i-zmir",
    "\N{KELVIN SIGN}imi": "kimi",
    "\N{FULLWIDTH DIGIT ONE}a": "a",
    "claude😀2": "claude-2",
    "humans": "humans",
    "human-2": "human-2",
    "all-in": "all-in",
    "a" * 32: "a" * 32,
    "a" * 33: "a" * 32,
    "a" * 31 + " b": "a" * 31,
    "-" * 40 + "claude": "claude",
}
RESERVED_NAMES = ["human", "all", "system", "router", "you", "user", "csp", "none"]


@pytest.mark.parametrize("name", NAME_TO_ID)
def test_name_becomes_this_id(name: str) -> None:
    assert to_id(name, JoinRole.AGENT) == NAME_TO_ID[name]


@pytest.mark.parametrize("name", ["", " ", "---", "日本", "😀", "\0", "ÄÖÜ", "\N{FULLWIDTH DIGIT ONE}"])
def test_name_without_a_letter_or_digit_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="no letter or digit"):
        to_id(name, JoinRole.AGENT)


@pytest.mark.parametrize("role", JoinRole)
@pytest.mark.parametrize("form", ["{}", " {} ", "-{}-", "{}!", "({})", "@{}"])
@pytest.mark.parametrize("word", RESERVED_NAMES)
def test_reserved_name_is_refused_in_every_disguise(word: str, form: str, role: JoinRole) -> None:
    for name in (form.format(word), form.format(word.upper())):
        with pytest.raises(BadInput, match=f"'{word}' is reserved"):
            to_id(name, role)


def test_reserved_name_is_refused_with_all_reserved_names_as_hint() -> None:
    with pytest.raises(BadInput) as caught:
        to_id("Human", JoinRole.AGENT)

    assert caught.value.hint == "reserved are: all, csp, human, mailbox, none, router, system, user, you"


def test_orchestrator_is_a_name_for_that_role_alone() -> None:
    assert to_id("Orchestrator", JoinRole.ORCHESTRATOR) == "orchestrator"

    with pytest.raises(BadInput, match="reserved for that role"):
        to_id("Orchestrator", JoinRole.AGENT)


def test_role_of_orchestrator_may_have_another_name() -> None:
    assert to_id("Chef", JoinRole.ORCHESTRATOR) == "chef"


@given(st.text())
def test_id_is_plain_and_keeps_itself(name: str) -> None:
    try:
        found = to_id(name, JoinRole.ORCHESTRATOR)
    except BadInput:
        return

    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", found)
    assert to_id(found, JoinRole.ORCHESTRATOR) == found


@pytest.mark.parametrize(
    ("wanted", "number", "expected"),
    [
        ("claude", 1, "claude"),
        ("claude", 2, "claude-2"),
        ("claude", 11, "claude-11"),
        ("a" * 32, 1, "a" * 32),
        ("a" * 32, 2, "a" * 30 + "-2"),
        ("a" * 32, 1000, "a" * 27 + "-1000"),
        ("a" * 30, 2, "a" * 30 + "-2"),
        ("a" * 29 + "-bb", 2, "a" * 29 + "-2"),
        ("claude-2", 2, "claude-2-2"),
    ],
)
def test_numbered_id_has_a_suffix_and_at_most_32_characters(wanted: str, number: int, expected: str) -> None:
    assert numbered(AgentId(wanted), number) == expected


@pytest.mark.parametrize("wanted", ["a", "a" * 31, "a" * 32, "a" * 29 + "-bb"])
def test_numbered_ids_never_meet(wanted: str) -> None:
    ids = [numbered(AgentId(wanted), number) for number in range(1, 1200)]

    assert len(set(ids)) == len(ids)
    assert max(map(len, ids)) <= MAX_ID == 32


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("cluade", ["codex", "claude"], "did you mean 'claude'?"),
        ("CODEX", ["codex", "claude"], "did you mean 'codex'?"),
        ("zzz", ["codex", "claude"], "known are: codex, claude"),
        ("zzz", [], "nobody has joined yet"),
    ],
)
def test_nearest_names_the_closest_word_or_all(word: str, known: list[str], hint: str) -> None:
    assert nearest(word, known) == hint
