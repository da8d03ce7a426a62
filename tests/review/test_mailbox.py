"""A run by files alone, with all that can be wrong with a file."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from csp.protocol.events import RunSaid
from csp.protocol.review_messages import RunRole, SessionAck, SessionEnd, SessionStart
from csp.review.mailbox import Mailbox, shown
from tests.review.playing import PLAN, Run
from tests.review.repository import RIGHT
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync

#: All that a third party needs: it reads its inbox, it writes files; of a gateway it knows nothing.
SCRIPT: Final = """
import json, os, pathlib, sys, time

own = pathlib.Path(sys.argv[1]) / "reviewer"
seen, number = set(), 0

def say(heard, message_type, **body):
    global number
    number += 1
    message = {"schema_version": "0.1", "timestamp": "2026-01-01T00:00:00Z", "sender": "reviewer",
               "run_id": heard["run_id"], "message_type": message_type, "body": body}
    temporary = own / f".{number}.tmp"
    temporary.write_text(json.dumps(message))
    os.replace(temporary, own / f"{number}.json")

while True:
    for path in sorted((own / "inbox").glob("*.json")):
        if path.name in seen:
            continue
        seen.add(path.name)
        heard = json.loads(path.read_text())
        body = heard["body"]
        if heard["message_type"] == "session.start":
            say(heard, "session.ack", note="a script")
        elif heard["message_type"] == "plan.proposed":
            say(heard, "plan.feedback", risk="low")
        elif heard["message_type"] == "execution.update" and body["final"]:
            if body["tests"]["passed"]:
                say(heard, "review.decision", decision="accept", rationale="the tests pass")
            else:
                finding = {"severity": "major", "text": "the tests fail"}
                say(heard, "review.decision", decision="revise", findings=[finding])
        elif heard["message_type"] == "session.end":
            sys.exit(0)
    time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRoom]:
    with LiveRoom(tmp_path_factory.mktemp("mail")) as live:
        yield live


def test_script_that_only_reads_and_writes_files_reviews(room: LiveRoom, tmp_path: Path) -> None:
    run = Run(room, reviewer="mailbox")
    mailbox = room.folder / "mailbox"
    wait_until_sync((mailbox / "reviewer" / "inbox").is_dir, what="inbox")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with subprocess.Popen([sys.executable, str(script), str(mailbox)]) as process:
        try:
            run.answer("claude", PLAN)
            run.until("execution")
            run.write("broken(\n")
            run.answer("claude", "DONE: first try")
            wait_until_sync(lambda: run.detail["run"]["cycle"] == 2, what="second cycle")
            run.write(RIGHT)
            run.answer("claude", "DONE: second try")
            run.answer("claude", "END: done")
            code = process.wait(120)
        finally:
            process.kill()

    assert code == 0
    assert run.detail["run"]["reason"] == "accepted"
    messages = run.check_files()
    said = [message["message_type"] for message in messages if message["sender"] == "reviewer"]
    assert said == ["session.ack", "plan.feedback", "review.decision", "review.decision"]
    handled = mailbox / "reviewer" / "handled"
    wait_until_sync(lambda: len(list(handled.iterdir())) == 4, what="the last letter put away")


def test_a_message_goes_to_the_other_role_and_the_first_one_to_both(tmp_path: Path) -> None:
    mailbox = Mailbox(tmp_path)
    mailbox.make()
    mailbox.post(1, "r-1", RunRole.REVIEWER, 0.0, SessionStart(goal="go"))
    mailbox.post(2, "r-1", RunRole.REVIEWER, 0.0, SessionAck())
    mailbox.post(3, "r-1", RunRole.BUILDER, 1.5, SessionEnd(status="accepted"))
    found = {role: sorted(path.name for path in (tmp_path / role / "inbox").iterdir()) for role in RunRole}

    assert found == {
        RunRole.BUILDER: ["00000001-r-1-session.start.json", "00000002-r-1-session.ack.json"],
        RunRole.REVIEWER: ["00000001-r-1-session.start.json", "00000003-r-1-session.end.json"],
    }


def said_of(run: Run, name: str) -> list[str]:
    return [notice for notice in run.notices() if notice.startswith(f"Mailbox: {shown(Path(name))} ")]


def _has_one(folder: Path, pattern: str) -> bool:
    return len(list(folder.glob(pattern))) == 1


def test_every_bad_file_is_a_clear_notice_and_changes_nothing(room: LiveRoom) -> None:
    run = Run(room, reviewer="mailbox")
    run.until("start")
    good = run.message("reviewer", "session.ack", note="hello")
    early = run.message("reviewer", "review.decision", decision="accept")
    bad: dict[str, tuple[str, object, str]] = {
        "half.json": ("reviewer", json.dumps(good).encode()[:60], "not valid JSON"),
        "malformed.json": ("reviewer", {**good, "body": {"telemetry": "all"}}, "session.ack: expected"),
        "version.json": ("reviewer", {**good, "schema_version": "9"}, "schema_version"),
        "sender.json": ("builder", good, "sender is reviewer, but the file is in the folder of the builder"),
        "path.json": ("reviewer", {**good, "run_id": "../../etc"}, "run_id"),
        "unknown.json": ("reviewer", {**good, "run_id": "nobody"}, "unknown run 'nobody'"),
        "early.json": ("reviewer", early, "is not allowed in phase start"),
        "x" * 240 + ".json": ("reviewer", b"{}", "schema_version"),
        os.fsdecode(b"\xff.json"): ("reviewer", b"{}", "schema_version"),
    }
    for name, (role, content, _) in bad.items():
        run.drop(role, name, content)
    for name, (role, _, problem) in bad.items():
        found = wait_until_sync(partial(said_of, run, name), what=shown(Path(name)))
        assert len(found) == 1 and problem in found[0], found
        refused = room.folder / "mailbox" / role / "refused"
        begin = f"*-{name[:100].removesuffix('.json')}*"
        # The notice comes first, so that it is told even if moving the file fails.
        wait_until_sync(partial(_has_one, refused, f"{begin}.json"), what="the file moved")
        wait_until_sync(partial(_has_one, refused, f"{begin}.reason.txt"), what="its reason")
        assert problem in next(iter(refused.glob(f"{begin}.reason.txt"))).read_text()
    assert run.phase == "start"
    assert not (room.folder.parent / "etc").exists()

    run.drop("reviewer", "good.json", good)
    run.until("plan")
    run.drop("reviewer", "again.json", good)
    assert "change its timestamp" in wait_until_sync(lambda: said_of(run, "again.json"), what="again")[0]
    assert run.phase == "plan"
    run.act("abort", rationale="done")


def test_file_that_is_still_being_written_is_left_alone(room: LiveRoom) -> None:
    run = Run(room, reviewer="mailbox")
    run.until("start")
    data = json.dumps(run.message("reviewer", "session.ack")).encode()
    path = room.folder / "mailbox" / "reviewer" / "slow.json"
    with path.open("wb", buffering=0) as file:
        for byte in data:
            file.write(bytes([byte]))
    run.until("plan")

    assert said_of(run, "slow.json") == []
    run.act("abort", rationale="done")


def test_file_is_not_taken_twice_across_a_crash(room: LiveRoom) -> None:
    run = Run(room, reviewer="mailbox")
    run.until("start")
    ack = run.message("reviewer", "session.ack", note="once")
    run.drop("reviewer", "ack.json", ack)
    run.until("plan")
    handled = room.folder / "mailbox" / "reviewer" / "handled"
    wait_until_sync(lambda: list(handled.glob("*-ack.json")), what="handled")
    room.kill9()
    # As if it had died after the journal, before the file was put away.
    next(iter(handled.glob("*-ack.json"))).rename(handled.parent / "ack.json")
    room.start()
    wait_until_sync(lambda: list(handled.glob("*-ack.json")), what="handled again")

    said = [event for event in room.journal() if isinstance(event, RunSaid) and event.run == run.id]
    assert [type(event.body).__name__ for event in said] == ["SessionStart", "SessionAck"]
    assert run.phase == "plan"
    run.act("abort", rationale="done")
