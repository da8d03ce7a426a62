"""Every field of a body reaches the command that the room is asked with."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from csp.errors import Refused
from csp.protocol.events import MessageEvent, decode_event
from csp.room.commands import AnyCommand
from tests.gateway.served import Member, ServedRoom, room_settings, served
from tests.waiting import wait_until

TTL_S = room_settings().message_ttl_s
SETUP = {
    "mode": "debate",
    "topic": "tabs",
    "agents": ["claude", "codex"],
    "rounds": 3,
    "steps": 4,
    "first": "codex",
    "synth": "claude",
    "ballot": True,
    "respect_final": True,
    "soft_turns": True,
    "limits": {"turns": 5, "tokens": 6, "minutes": 7.5, "cost": 8.5},
}
#: The route, the caller, what it is sent, and what the command must hold.
ROWS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    (
        "/message",
        "claude",
        {"to": "codex", "content": "hi", "thread": "dev", "replyTo": "m-1", "urgent": True, "id": "mine"},
        {
            "sender": "claude",
            "to": "codex",
            "text": "hi",
            "thread": "dev",
            "reply_to": "m-1",
            "urgent": True,
            "id": "mine",
            "ttl_s": TTL_S,
            "only": None,
        },
    ),
    (
        "/agent-output",
        "claude",
        {
            "content": "done",
            "turn": "t-1",
            "replyTo": "m-1",
            "final": True,
            "thread": "dev",
            "handoff": {"to": "codex", "task": "go on"},
            "usage": {"input": 1, "output": 2},
            "id": "mine",
            "activity": True,
            "local": True,
            "ending": "interrupted",
            "reason": "why",
        },
        {
            "sender": "claude",
            "text": "done",
            "turn": "t-1",
            "reply_to": "m-1",
            "final": True,
            "handoff": {"to": "codex", "task": "go on"},
            "thread": "dev",
            "id": "mine",
            "ttl_s": TTL_S,
            "activity": True,
            "local": True,
            "ending": "interrupted",
            "reason": "why",
        },
    ),
    (
        "/delivery",
        "claude",
        {"id": "m-1", "state": "held", "reason": "busy"},
        {"agent": "claude", "message": "m-1", "state": "held", "reason": "busy"},
    ),
    (
        "/delivery",
        "",
        {"id": "m-1", "state": "held", "reason": "busy", "agent": "codex"},
        {"agent": "codex", "message": "m-1"},
    ),
    (
        "/state",
        "claude",
        {"state": "limited", "detail": "no tokens", "until": 9.5, "dialog": {"text": "?", "choices": []}},
        {"agent": "claude", "state": "limited", "detail": "no tokens", "until": 9.5},
    ),
    ("/turn/working", "claude", {"note": "at it"}, {"agent": "claude", "note": "at it"}),
    (
        "/turn/vote",
        "claude",
        {"label": "B", "reason": "why", "session": "s-1"},
        {"agent": "claude", "label": "B", "reason": "why", "session": "s-1"},
    ),
    (
        "/turn/handoff",
        "claude",
        {"to": "codex", "task": "go on", "session": "s-1"},
        {"agent": "claude", "to": "codex", "task": "go on", "session": "s-1"},
    ),
    ("/turn/next", "", {"thread": "dev"}, {"thread": "dev"}),
    ("/turn/next", "", {}, {"thread": "default"}),
    ("/mode", "", SETUP | {"thread": "dev"}, SETUP | {"sender": "human", "thread": "dev"}),
    ("/mode", "", SETUP, {"thread": "default"}),
    ("/sessions", "", SETUP | {"thread": "dev"}, SETUP | {"sender": "human", "thread": "dev"}),
    ("/sessions", "", SETUP, {"thread": None}),
    (
        "/sessions/s-1/extend",
        "",
        {"agent": "codex", "rounds": 3, "minutes": 4.5},
        {
            "sender": "human",
            "session": "s-1",
            "action": "extend",
            "agent": "codex",
            "rounds": 3,
            "minutes": 4.5,
        },
    ),
    ("/stop", "", {"thread": "dev"}, {"sender": "human", "thread": "dev"}),
    ("/stop", "", {}, {"sender": "human", "thread": "default"}),
    ("/stop", "", {"all": True, "thread": "dev"}, {"sender": "human", "thread": None}),
    (
        "/collaborations",
        "",
        {
            "objective": "a plan",
            "models": ["claude"],
            "session_id": "plan",
            "user_input": "go",
            "mode": "round_robin",
            "max_steps": 3,
            "parallel": 2,
            "timeout_per_step": 4.5,
            "cost_limit_usd": 5.5,
            "summarization_threshold": 6,
            "thread": "dev",
        },
        {
            "sender": "human",
            "objective": "a plan",
            "agents": ["claude"],
            "session": "plan",
            "said": "go",
            "mode": "round_robin",
            "steps": 3,
            "parallel": 2,
            "step_s": 4.5,
            "cost": 5.5,
            "summarise_at": 6,
            "thread": "dev",
            "prices": {},
        },
    ),
    ("/collaborations", "", {"objective": "a plan", "models": ["claude"]}, {"thread": "default"}),
    (
        "/board",
        "claude",
        {"text": "a note", "session": "s-1", "tags": ["x"], "id": "mine"},
        {"sender": "claude", "text": "a note", "session": "s-1", "tags": ["x"], "id": "mine"},
    ),
    (
        "/runs",
        "",
        {
            "goal": "g",
            "builder": "claude",
            "reviewer": "codex",
            "run_id": "run-7",
            "test": "true",
            "test_timeout_s": 7.5,
            "max_revisions": 3,
            "on_accept": "nothing",
            "approve": True,
            "dir": "/tmp",
            "thread": "dev",
        },
        {
            "sender": "human",
            "mode": "review",
            "topic": "g",
            "agents": ["claude", "codex"],
            "max_revisions": 3,
            "thread": "dev",
            "terms": {
                "run_id": "run-7",
                "test": "true",
                "test_timeout_s": 7.5,
                "on_accept": "nothing",
                "approve": True,
                "dir": "/tmp",
            },
        },
    ),
    ("/runs", "", {"goal": "g", "builder": "claude", "reviewer": "codex"}, {"thread": "default"}),
    ("/messages/m-1/cancel", "", {}, {"message": "m-1"}),
    ("/messages/m-1/continue", "", {}, {"message": "m-1"}),
]


@pytest.fixture
def asked(room: ServedRoom, monkeypatch: pytest.MonkeyPatch) -> list[AnyCommand]:
    """The commands that the room was asked with; it refuses them all."""
    commands: list[AnyCommand] = []

    def record(command: AnyCommand) -> None:
        commands.append(command)
        raise Refused("recorded", "it is a test")

    monkeypatch.setattr(room.gateway, "_recorded", record, raising=False)
    return commands


@pytest.mark.parametrize(
    ("path", "who", "body", "expected"), ROWS, ids=[f"{row[0]} {len(row[2])}" for row in ROWS]
)
async def test_every_field_of_a_body_reaches_the_command(
    room: ServedRoom,
    asked: list[AnyCommand],
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    who: str,
    body: dict[str, Any],
    expected: dict[str, Any],
) -> None:
    members = {name: await room.join(name) for name in ("claude", "codex")}
    monkeypatch.setattr(room.gateway, "submit", room.gateway._recorded)  # type: ignore[attr-defined]
    answer = await room.call("POST", path, body, token=members[who].token if who else room.token)
    (command,) = asked
    found = msgspec.json.decode(msgspec.json.encode(command))

    assert answer.status == 409
    assert {key: found.get(key, getattr(command, key, "not there")) for key in expected} == expected


@pytest.mark.parametrize("path", ["/message", "/agent-output", "/board", "/mode", "/runs", "/collaborations"])
async def test_text_that_is_too_long_is_refused_wherever_it_comes_in(room: ServedRoom, path: str) -> None:
    claude = await room.join("claude")
    long = "ü" * 200_000
    bodies: dict[str, dict[str, Any]] = {
        "/message": {"to": "all", "content": long},
        "/agent-output": {"content": long},
        "/board": {"text": long},
        "/mode": {"mode": "single", "topic": long},
        "/runs": {"goal": long, "builder": "claude", "reviewer": "mailbox"},
        "/collaborations": {"objective": long, "models": ["claude"]},
    }
    token = claude.token if path in ("/message", "/agent-output", "/board") else room.token
    answer = await room.call("POST", path, bodies[path], token=token)

    assert (answer.status, "text is over" in answer.data["error"]) == (413, True)


async def test_user_input_of_a_collaboration_is_checked_too(room: ServedRoom) -> None:
    await room.join("claude")
    body = {"objective": "a plan", "models": ["claude"], "user_input": "ü" * 200_000}

    assert (await room.call("POST", "/collaborations", body)).status == 413


async def test_a_run_cannot_take_the_folder_of_another(room: ServedRoom) -> None:
    room.gateway.run_worker.folders.path("run-7").mkdir(parents=True)
    body = {"goal": "g", "builder": "mailbox", "reviewer": "mailbox", "run_id": "run-7"}
    answer = await room.call("POST", "/runs", body)

    assert (answer.status, "folder of run 'run-7'" in answer.data["error"]) == (409, True)


async def test_a_message_of_a_run_must_name_the_run_of_its_path(room: ServedRoom) -> None:
    claude = await room.join("claude")
    await room.post("/runs", {"goal": "g", "builder": "claude", "reviewer": "mailbox", "run_id": "run-7"})
    body = {
        "schema_version": "0.1",
        "timestamp": "2026-01-01T00:00:00Z",
        "sender": "builder",
        "run_id": "run-8",
        "message_type": "session.ack",
        "body": {},
    }
    answer = await room.call("POST", "/runs/run-7/message", body, token=claude.token)

    assert (answer.status, "but the path names 'run-7'" in answer.data["error"]) == (400, True)


async def test_runs_are_listed_with_their_figures(room: ServedRoom) -> None:
    await room.post("/runs", {"goal": "g", "builder": "mailbox", "reviewer": "mailbox", "run_id": "run-7"})
    await room.post("/runs/run-7/abort", {"rationale": "enough"})
    found = await room.get("/runs")

    assert [run["id"] for run in found["items"]] == ["run-7"]
    assert [one["reviewer"] for one in found["stats"]] == ["mailbox"]


async def test_who_is_neither_sender_nor_recipient_does_not_hear_of_a_message(tmp_path: Any) -> None:
    async with served(tmp_path / "room") as room:
        claude, codex, gemini = [await room.join(name) for name in ("claude", "codex", "gemini")]
        message = await room.send("codex", "hello", claude.token)
        statuses = [
            (await room.call("GET", f"/messages/{message}", token=token)).status
            for token in (claude.token, codex.token, gemini.token, room.token)
        ]

    assert statuses == [200, 200, 404, 200]


async def test_log_asked_for_by_an_agent_is_the_newest_before_its_question(room: ServedRoom) -> None:
    claude = await room.join("claude")
    for number in range(6):
        await room.send("all", f"word {number}")
    await room.post("/agent-output", {"content": "@query.log 2"}, claude.token)
    answer: Callable[[], str | Awaitable[str]] = lambda: _after(room, claude, "word 5")  # noqa: E731
    told = await wait_until(answer, what="the answer")

    assert "word 3" not in told and "word 4" in told and "word 5" in told and "@query" not in told
    (query,) = [event for event in _said(room) if event.text == told]
    assert query.expires == pytest.approx(query.ts + TTL_S)


def _said(room: ServedRoom) -> list[MessageEvent]:
    lines = room.gateway.writer.journal.view.read_after(0, 1 << 20).lines
    return [event for event in map(decode_event, lines) if isinstance(event, MessageEvent)]


async def _after(room: ServedRoom, member: Member, text: str) -> str:
    """Return what came for a participant after a text, nothing if nothing has."""
    items = [item["text"] for item in (await room.get(f"/inbox/{member.id}?after=0", member.token))["items"]]
    return "\n".join(items[items.index(text) + 1 :])
