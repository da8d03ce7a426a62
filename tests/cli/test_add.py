"""csp add: what it was told reaches those who start the agent."""

from pathlib import Path

import pytest

from csp.cli import add
from csp.errors import BadInput, Refused
from csp.panes.waiting import Outcome
from csp.rooms import Address
from tests.cli.recording import call_of, with_settings


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--provider", "openai", "--model", "m", "--", "cmd"), "a model behind an API has no command"),
        (("--provider", "openai"), "--provider needs a model beside it"),
        (("--model", "m"), "--model needs a provider beside it"),
        (("--base-url", "http://x"), "--base-url needs a provider beside it"),
        (("--key-env", "K"), "--key-env needs a provider beside it"),
        (("--role", "orchestrator"), "--role needs a provider beside it"),
    ],
)
def test_what_belongs_to_a_model_is_refused_for_a_cli(words: tuple[str, ...], problem: str) -> None:
    with pytest.raises(BadInput) as caught:
        add.add(call_of("add", "x", *words))

    assert caught.value.message == problem


def test_a_model_gets_every_option(tmp_path: Path) -> None:
    words = ("--provider", "openai", "--model", "gpt-5", "--base-url", "http://x/v1", "--key-env", "K")
    member = add._model(call_of("add", "gpt", *words, "--role", "orchestrator").args, tmp_path)

    assert (member.name, member.role, member.cwd) == ("gpt", "orchestrator", tmp_path)
    for word in (*words, "--role", "orchestrator"):
        assert word in member.command or word in member.shown_command


@pytest.mark.parametrize(
    ("agent", "problem", "code", "said"),
    [
        ("x", "", 0, "x is here (idle)\n"),
        ("x-2", "", 0, "x-2 is here (idle); the name 'x' was taken\n"),
        ("x", "x has ended", 1, "csp: x has ended\n"),
    ],
)
def test_add_says_how_it_went(
    agent: str,
    problem: str,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    outcome = Outcome(agent=agent, state="idle", problem=problem)
    monkeypatch.setattr(add, "_add_cli", lambda call, env: ("x", outcome))

    assert add.add(call_of("add", "x", "--", "cmd")) == code
    assert capsys.readouterr() == ("", said)


def test_add_needs_a_room_of_this_machine() -> None:
    call = call_of("add", "x", "--", "cmd")
    call.__dict__["address"] = Address(url="http://x", token="t")
    with pytest.raises(BadInput, match="needs a room of this machine"):
        add.add(call)
    with pytest.raises(BadInput, match="runs a gateway of its own"):
        add.add(with_settings(call, gateway_url="http://x"))
    with pytest.raises(Refused, match="this pane is agent 'me'"):
        add.add(with_settings(call, agent="me"))
