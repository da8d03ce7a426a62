"""csp allow, rules, decide, and how `csp status` shows what needs a person, without a room."""

from typing import Any

import pytest

from csp.cli.needs import needs_lines, shell_command
from csp.errors import BadInput
from tests.cli.recording import Recorded, run

RULE: dict[str, Any] = {
    "success": True,
    "rule": {"number": 52, "agent": "ada", "pattern": "pytest -q", "source": "room"},
}


def test_a_rule_is_given_with_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    gateway = Recorded({"/rules": RULE})

    assert run(gateway, "allow", "ada", "--", "pytest", "-q") == 0
    assert gateway.asked == [("POST", "/rules", {"agent": "ada", "pattern": "pytest -q"})]
    assert gateway.once == ["/rules"]
    assert capsys.readouterr().err == "ada may run: pytest -q (rule #52)\n"
    useless = RULE | {"rule": RULE["rule"] | {"problem": "no effect"}}
    assert run(Recorded({"/rules": useless}), "allow", "ada", "pytest") == 0
    assert capsys.readouterr().err.startswith("no effect\n")
    with pytest.raises(BadInput, match="expected a command"):
        run(gateway, "allow", "ada")


def test_a_rule_is_removed_by_its_number(capsys: pytest.CaptureFixture[str]) -> None:
    gateway = Recorded({"/rules/52": RULE})

    assert run(gateway, "unallow", "#52") == 0
    assert gateway.asked == [("DELETE", "/rules/52", {})]
    assert capsys.readouterr().err == "ada has to ask again for: pytest -q\n"


def test_rules_say_where_they_are_from(capsys: pytest.CaptureFixture[str]) -> None:
    other = {"number": 0, "agent": "bob", "pattern": "make", "source": "csp.toml"}

    assert run(Recorded({"/rules": {"items": [RULE["rule"], other]}}), "rules") == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["#52", "ada", "may", "run:", "pytest", "-q"],
        ["csp.toml", "bob", "may", "run:", "make"],
    ]
    assert run(Recorded({"/rules": {"items": [RULE["rule"] | {"problem": "no effect"}]}}), "rules") == 0
    assert "pytest -q (no effect)\n" in capsys.readouterr().out
    assert run(Recorded({"/rules": {"items": []}}), "rules") == 0
    assert "no rules yet" in capsys.readouterr().err


def test_a_tie_is_decided(capsys: pytest.CaptureFixture[str]) -> None:
    gateway = Recorded({"/sessions/s-3/decide": {"success": True}})

    assert run(gateway, "decide", "s-3", "B") == 0
    assert gateway.asked == [("POST", "/sessions/s-3/decide", {"choice": "B"})]
    assert capsys.readouterr().err == "decided s-3: B\n"


@pytest.mark.parametrize(
    ("line", "kind", "command"),
    [
        ("/approve ada 1", "approval", "csp approve ada 1"),
        ("/allow ada pytest -q", "approval", "csp allow ada 'pytest -q'"),
        ("/allow ada pytest -k 'a b'", "approval", "csp allow ada 'pytest -k '\"'\"'a b'\"'\"''"),
        ("/restart ada", "ended", "csp up --agents ada"),
        ("/restart ada", "stuck", "csp restart ada"),
        ("/focus ada", "approval", "in the room: /focus ada"),
        ("@ada", "question", "in the room: @ada"),
        ("/decide s-3 B", "tie", "csp decide s-3 B"),
    ],
)
def test_each_answer_is_a_command_of_a_shell(line: str, kind: str, command: str) -> None:
    assert shell_command(line, kind) == command


def test_each_thing_has_its_age_its_detail_and_its_answers() -> None:
    answers = [{"key": "y", "label": "Approve", "line": "/approve ada"}]
    item = {"title": "ada asks", "since": 40, "detail": "rm\n  x", "kind": "approval", "answers": answers}

    assert list(needs_lines([item], 100.0)) == [
        "needs you: ada asks (1 min)",
        "    rm x",
        "    Approve  csp approve ada",
    ]
