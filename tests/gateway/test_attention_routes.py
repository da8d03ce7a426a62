"""What needs a person over HTTP: the list, the rules, and the lines that answer."""

from typing import Any

import pytest

from csp.room.attention import EVENTS
from tests.gateway.served import ROOM, Member, ServedRoom

COMMAND = {"tool": "Bash", "arguments": '{"command":"pytest -q"}', "runs": "pytest -q"}


async def _asks(room: ServedRoom, agent: Member, command: str = "pytest -q") -> None:
    dialog = COMMAND | {"arguments": f'{{"command":"{command}"}}', "runs": command}
    state = {"state": "needs_approval", "dialog": dialog, "asks": "permission"}
    await room.post("/state", state, token=agent.token)


async def _items(room: ServedRoom, token: str = ROOM) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await room.get("/attention", token))["items"]
    return items


async def _type(room: ServedRoom, line: str) -> dict[str, Any]:
    said: dict[str, Any] = await room.post("/line", {"line": line})
    return said


async def _refused(room: ServedRoom, line: str) -> str:
    answer = await room.call("POST", "/line", {"line": line})
    assert answer.is_refusal, answer
    return str(answer.data["error"])


async def test_an_approval_is_listed_and_answered_by_its_line(room: ServedRoom) -> None:
    claude = await room.join("claude")
    await _asks(room, claude)
    (item,) = await _items(room)
    assert (item["id"], item["detail"], item["level"]) == ("approval:claude", "pytest -q", "action")

    assert await _type(room, item["answers"][0]["line"]) == {"kind": "done"}
    assert await _items(room) == []
    assert (await room.get("/queue"))["items"][0]["text"] == "approve"


async def test_the_orchestrator_does_not_see_what_it_is_about(room: ServedRoom) -> None:
    claude = await room.join("claude")
    boss = await room.join("orchestrator", role="orchestrator")
    await _asks(room, claude)
    (item,) = await _items(room, boss.token)

    assert (item["agent"], item["detail"], item["answers"]) == ("claude", "", [])


async def test_a_rule_by_line_approves_the_open_dialog(room: ServedRoom) -> None:
    claude = await room.join("claude")
    await _asks(room, claude)
    await _type(room, "/allow claude pytest")
    (control,) = (await room.get("/inbox/claude", token=claude.token))["items"]

    assert (control["control"], control["about"]) == ("approve", "pytest -q")
    assert await _items(room) == []
    (rule,) = (await room.get("/rules"))["items"]
    assert (rule["agent"], rule["pattern"], rule["source"]) == ("claude", "pytest", "room")
    await _type(room, f"/unallow #{rule['number']}")
    assert (await room.get("/rules"))["items"] == []


@pytest.mark.parametrize(
    ("capabilities", "problem"),
    [
        (["claude"], ""),
        (["gemini"], ""),
        (["my-own"], ""),
        (["codex"], ""),
        (["demo"], "no effect: ada does not report its commands to CSP"),
        ({"profile": "demo", "duty": "reviewer"}, "no effect: ada does not report its commands to CSP"),
        ([], ""),
    ],
)
async def test_a_rule_for_an_agent_that_reports_no_commands_says_so(
    room: ServedRoom, capabilities: object, problem: str
) -> None:
    await room.join("ada", capabilities=capabilities)
    await _type(room, "/allow ada pytest")
    (rule,) = (await room.get("/rules"))["items"]

    assert rule["problem"] == problem


async def test_always_means_the_command_that_was_shown_and_no_other(room: ServedRoom) -> None:
    claude = await room.join("claude")
    await _asks(room, claude)
    (item,) = await _items(room)
    (always,) = (answer["line"] for answer in item["answers"] if answer["key"] == "a")
    await _type(room, always)
    (control,) = (await room.get("/inbox/claude", token=claude.token))["items"]
    assert (control["control"], control["about"]) == ("approve", "pytest -q")

    await room.post("/delivery", {"id": control["id"], "state": "confirmed"}, token=claude.token)
    await _asks(room, claude, "pytest -q -p evil")

    (item,) = await _items(room)
    assert item["detail"] == "pytest -q -p evil"
    assert (await room.get("/inbox/claude", token=claude.token))["items"] == []


async def test_the_only_dialog_needs_no_name(room: ServedRoom) -> None:
    assert await _refused(room, "/approve") == "no dialog is open"
    await _asks(room, await room.join("claude"))
    await _type(room, "/approve 2")
    assert (await room.get("/queue"))["items"][0]["target"] == "claude"

    await _asks(room, await room.join("codex"))
    await _asks(room, await room.join("gemini"))
    assert await _refused(room, "/deny") == "several dialogs are open: codex, gemini"


async def test_a_plan_is_approved_by_its_line(room: ServedRoom) -> None:
    run = {"goal": "g", "builder": "mailbox", "reviewer": "mailbox", "run_id": "run-1"}
    await room.post("/runs", run)

    assert await _refused(room, "/review go run-1") == "run run-1 is in phase setup, go is for approval"
    assert await _refused(room, "/review decide run-1 perhaps") == (
        "expected a decision: accept, revise or abort"
    )
    assert await _refused(room, "/review go") == "expected a run"
    await _type(room, "/review abort run-1 not wanted")
    assert (await room.get("/runs/run-1"))["run"]["reason"] == "aborted"


async def test_a_message_is_named_by_its_number(room: ServedRoom) -> None:
    claude = await room.join("claude")
    await room.send("claude", "later")
    number = (await room.get("/queue"))["items"][0]["seq"]
    assert await _refused(room, "/resend") == "expected the number of a message"
    await _type(room, f"/cancel #{number}")

    assert (await room.get("/inbox/claude", token=claude.token))["items"] == []
    assert await _refused(room, "/continue") == "the loop guard holds no messages"


async def test_a_session_without_an_open_matter_is_not_decided(room: ServedRoom) -> None:
    await room.join("claude")
    await room.post("/mode", {"mode": "autopilot", "topic": "x", "agents": ["claude"]})
    (session,) = (await room.get("/sessions"))["items"]

    assert "is not waiting for a decision" in await _refused(room, f"/decide {session['id']} ok")
    assert await _refused(room, "/decide") == "expected a session and a choice"


@pytest.mark.parametrize(
    ("line", "name", "rest"),
    [
        ("/focus claude", "focus", "claude"),
        ("/review start it", "review", "start it"),
        ("/review", "review", ""),
        ("/cancel", "cancel", ""),
        ("/rules", "rules", ""),
    ],
)
async def test_what_the_page_has_a_part_for_is_left_to_it(
    room: ServedRoom, line: str, name: str, rest: str
) -> None:
    done = await _type(room, line)

    assert (done["kind"], done["name"], done.get("rest", "")) == ("command", name, rest)


async def test_the_catalogue_names_the_events_that_change_the_list(room: ServedRoom) -> None:
    assert (await room.get("/catalogue"))["attention_events"] == list(EVENTS)
