"""The routes of runs by themselves: every word reaches the room, what is run here is for people to say."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from csp.errors import BadInput, Forbidden, NotFound, Refused
from csp.gateway import routes, run_routes
from csp.gateway.auth import Caller
from csp.gateway.route_table import Call
from csp.protocol.enums import HUMAN, Mode, Role
from csp.protocol.review_messages import (
    MAX_REVISIONS,
    Decision,
    MessageType,
    OnAccept,
    Plan,
    RunAction,
    RunActionBody,
    RunBody,
    RunMessageBody,
    RunRole,
    RunTerms,
    Severity,
    Verdict,
    read_body,
)
from csp.room.commands import ActOnRun, SayInRun, SetMode
from tests.gateway.asked import AGENT, CLAUDE, ROOM, Recorder

EDITED = Plan(steps=("edited",))
START = next(route for route in routes.ROUTES if route.name == "POST /runs")
BOSS = Caller(CLAUDE, Role.ORCHESTRATOR, 3)


def gateway_of(tmp_path: Path, *, live_in: str = "", phase: str = "approval") -> Recorder:
    """Return a gateway with one run, whose files lie in a folder of the test."""
    live = {live_in: SimpleNamespace(id="s-1", setup=SimpleNamespace(mode=Mode.DEBATE))}
    known = {"run-1": SimpleNamespace(id="run-1", phase=phase)}
    room = SimpleNamespace(sessions=SimpleNamespace(live_in=live.get), runs=SimpleNamespace(by_id=known))
    folders = SimpleNamespace(path=lambda name: tmp_path / name, edited_plan=lambda name: EDITED)
    worker = SimpleNamespace(folders=folders)
    return Recorder(writer=SimpleNamespace(room=room), run_worker=worker, hosts_runs=True)


BODY: dict[str, Any] = {"goal": "mend it", "builder": "codex", "reviewer": "claude"}


async def test_every_word_of_a_run_reaches_the_room(tmp_path: Path) -> None:
    told: dict[str, Any] = {"run_id": "run-2", "test": "make test", "test_timeout_s": 9.0}
    told |= {"on_accept": OnAccept.NOTHING, "approve": True, "dir": "/work"}
    gateway = gateway_of(tmp_path)
    body = RunBody(**BODY, **told, max_revisions=5, thread="side")
    command = await gateway.command(run_routes.start_run, ROOM, body)
    plain = await gateway.command(run_routes.start_run, AGENT, RunBody(**BODY))

    assert command == SetMode(
        sender=HUMAN,
        mode=Mode.REVIEW,
        topic="mend it",
        agents=("codex", "claude"),
        max_revisions=5,
        terms=RunTerms(**told),
        thread="side",
    )
    assert (plain.sender, plain.terms, plain.thread) == (CLAUDE, RunTerms(), "default")
    assert plain.max_revisions == MAX_REVISIONS == 3


@pytest.mark.parametrize("more", [{"test": "make test"}, {"dir": "/work"}])
async def test_only_people_say_what_is_run_here_and_where(tmp_path: Path, more: dict[str, Any]) -> None:
    gateway = gateway_of(tmp_path)
    with pytest.raises(Forbidden):
        await routes.answer(gateway, START, Call(BOSS, {}, None, RunBody(**BODY, **more)))  # type: ignore[arg-type]  # it is enough


async def test_a_run_whose_files_are_still_there_is_not_begun_again(tmp_path: Path) -> None:
    (tmp_path / "run-2").mkdir()
    gateway = gateway_of(tmp_path)
    with pytest.raises(Refused, match="a folder of run 'run-2' already exists"):
        await run_routes.start_run(gateway, Call(ROOM, {}, None, RunBody(**BODY, run_id="run-2")))  # type: ignore[arg-type]  # it is enough


async def test_a_run_takes_no_thread_from_another_session(tmp_path: Path) -> None:
    busy: Any = gateway_of(tmp_path, live_in="default")

    assert run_routes.thread_for_run(busy, None) is None
    assert run_routes.thread_for_run(busy, "side") == "side"
    with pytest.raises(Refused, match="session s-1"):
        run_routes.thread_for_run(busy, "default")


def a_message(**more: Any) -> RunMessageBody:
    values: dict[str, Any] = {"schema_version": "0.1", "timestamp": "now", "sender": RunRole.BUILDER}
    values |= {"run_id": "run-1", "message_type": MessageType.SESSION_ACK, "body": {"note": "ready"}}
    return RunMessageBody(**values | more)


async def test_a_message_of_a_run_has_a_key_of_its_own(tmp_path: Path) -> None:
    gateway = gateway_of(tmp_path)
    first, again, later, other = [
        await gateway.command(run_routes.say_in_run, AGENT, body, id="run-1")
        for body in (
            a_message(),
            a_message(),
            a_message(timestamp="later"),
            a_message(sender=RunRole.REVIEWER),
        )
    ]

    body = read_body(a_message().message_type, {"note": "ready"})
    assert first == SayInRun(
        sender=CLAUDE, run="run-1", body=body, role=RunRole.BUILDER, origin="http", key=first.key
    )
    assert first.key == again.key and len({first.key, later.key, other.key}) == 3


@pytest.mark.parametrize(
    ("caller", "path", "error"), [(ROOM, "run-1", Forbidden), (AGENT, "run-2", BadInput)]
)
async def test_a_message_of_a_run_is_an_agents_and_names_its_run(
    tmp_path: Path, caller: Caller, path: str, error: type[Exception]
) -> None:
    gateway: Any = gateway_of(tmp_path)
    with pytest.raises(error):
        await run_routes.say_in_run(gateway, Call(caller, {"id": path}, None, a_message()))


async def test_every_word_of_a_person_about_a_run_reaches_the_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, Any] = {"decision": Decision.REVISE, "rationale": "why", "finding": "f-1"}
    told |= {"verdict": Verdict.REJECTED, "defect": "it is slow", "severity": Severity.MINOR}
    gateway = gateway_of(tmp_path)
    monkeypatch.setattr(run_routes, "known_run", lambda known, name: known[name])
    monkeypatch.setattr(run_routes, "is_plan_open", lambda run: run.phase == "approval")
    command = await gateway.command(
        run_routes.act_on_run, ROOM, RunActionBody(**told), id="run-1", act="decide"
    )

    assert command == ActOnRun(sender=HUMAN, run="run-1", action=RunAction.DECIDE, **told)
    with pytest.raises(NotFound, match="unknown action 'dance'"):
        await run_routes.act_on_run(
            gateway,  # type: ignore[arg-type]  # it is enough
            Call(ROOM, {"id": "run-1", "act": "dance"}, None, RunActionBody()),
        )


@pytest.mark.parametrize(
    ("act", "phase", "given", "plan"),
    [
        ("go", "approval", None, EDITED),
        ("go", "approval", Plan(steps=("given",)), Plan(steps=("given",))),
        ("resume", "approval", None, EDITED),
        ("resume", "execution", None, None),
        ("halt", "approval", None, None),
    ],
)
async def test_a_run_goes_on_with_the_plan_that_was_edited(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    act: str,
    phase: str,
    given: Plan | None,
    plan: Plan | None,
) -> None:
    monkeypatch.setattr(run_routes, "known_run", lambda known, name: known[name])
    monkeypatch.setattr(run_routes, "is_plan_open", lambda run: run.phase == "approval")
    gateway = gateway_of(tmp_path, phase=phase)
    command = await gateway.command(
        run_routes.act_on_run, ROOM, RunActionBody(plan=given), id="run-1", act=act
    )

    assert command.plan == plan
