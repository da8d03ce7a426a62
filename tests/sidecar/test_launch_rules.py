"""The rules that a CLI gets with its start."""

from csp.prompt_files import read_prompt
from csp.sidecar.launch import rules_text

COMMANDS = (
    "@mode.set debate",
    "@mode.status",
    "@send.NAME",
    "@all text",
    "@handoff.NAME",
    "@query.log",
    "NOOP",
)


def test_the_orchestrator_gets_its_own_prompt() -> None:
    own = read_prompt("orchestrator.md").replace("{agent}", "boss")

    assert rules_text("boss", "orchestrator") == f"{rules_text('boss')}\n{own}"
    assert own not in rules_text("boss")


def test_the_prompt_of_the_orchestrator_says_what_it_is_for() -> None:
    text = rules_text("boss", "orchestrator").removeprefix(rules_text("boss"))

    assert "You are the orchestrator of this room, the participant `boss`." in text
    assert "you do not do their work yourself" in text
    assert [command for command in COMMANDS if f"\n    {command}" not in text] == []
    assert [
        mode for mode in ("freeform", "debate", "consensus", "orchestrator") if f"- {mode}: " not in text
    ] == []
    assert "VOTE: [A]" in text and "REASON: ..." in text


def test_what_the_user_says_comes_after_the_rules() -> None:
    assert rules_text("bob", prompt="Find {agent}.") == f"{rules_text('bob')}\nFind {{agent}}.\n"


def test_no_name_is_left_open() -> None:
    for role in ("agent", "orchestrator"):
        assert "{agent}" not in rules_text("boss", role, has_tools=True)
