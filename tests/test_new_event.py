"""A new event takes three files: its type, what it does to a room, and who may read it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent

NEW_TYPE: Final = """
class Waved(Event, frozen=True, omit_defaults=True, tag="waved"):
    hand: str = ""


"""
#: What a programmer writes to add an event: in each file, a text and what stands there afterwards.
CHANGES: Final = {
    "protocol/events.py": [
        ("class Pruned(Event,", f"{NEW_TYPE}class Pruned(Event,"),
        ("| PrunedBase\n", "| PrunedBase | Waved\n"),
    ],
    "room/room_reducer.py": [
        ("            events.Pruned()\n", "            events.Pruned() | events.Waved()\n"),
    ],
    "room/visibility.py": [
        (
            "events.DeliveryMoved() | events.ControlSent():",
            "events.DeliveryMoved() | events.ControlSent() | events.Waved():",
        ),
    ],
}

ROOM: Final = """
    import asyncio, json, pathlib
    from csp.config import Settings
    from csp.protocol.enums import ALL, AgentId, JoinRole, ParticipantKind
    from csp.protocol.events import Joined, Waved, decode_event, encode_event
    from csp.room.room_reducer import replay
    from csp.room.visibility import is_visible_to
    from tests.gateway.served import Clock, ServedRoom

    ada, bob = AgentId("ada"), AgentId("bob")
    kind, role = ParticipantKind.MCP, JoinRole.AGENT
    joined = [
        Joined(seq, 1.0, f"m-{seq}", name, ALL, "default", "", name=name, kind=kind, role=role, epoch=1)
        for seq, name in enumerate((ada, bob, AgentId("cy")), start=1)
    ]
    waved = Waved(4, 2.0, "m-4", ada, bob, "default", "hello", hand="left")
    lines = [encode_event(event) for event in (*joined, waved)]
    decoded = [decode_event(line) for line in lines]
    print("journal", decoded[3] == waved)
    room = replay(decoded)
    print("room", room.seq)
    print("readers", [name for name in (ada, bob, "cy") if is_visible_to(waved, name, room.sessions)])


    async def look():
        folder = pathlib.Path("den")
        folder.mkdir()
        (folder / "journal.jsonl").write_bytes(b"".join(line + b"\\n" for line in lines))
        async with ServedRoom(folder, Settings(), Clock(3.0)) as served:
            page = await served.get("/history?types=waved")
            print("http", [(item["text"], item["hand"]) for item in page["items"]])


    asyncio.run(look())
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a CSP with the new event says of a room in which it occurred."""
    place = tmp_path_factory.mktemp("grown")
    shutil.copytree(ROOT / "csp", place / "csp", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "prompts", place / "prompts")
    for name, edits in CHANGES.items():
        source = (place / "csp" / name).read_text()
        for before, after in edits:
            assert source.count(before) == 1, (name, before)
            source = source.replace(before, after)
        (place / "csp" / name).write_text(source)
    env = os.environ | {"PYTHONPATH": f"{place}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", dedent(ROOM)],
        cwd=place,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def test_a_new_event_touches_three_files() -> None:
    assert len(CHANGES) == 3


def test_a_new_event_is_read_back_from_the_journal(said: dict[str, str]) -> None:
    assert said["journal"] == "True"


def test_a_new_event_is_applied(said: dict[str, str]) -> None:
    assert said["room"] == "4"


def test_only_those_that_a_new_event_concerns_may_read_it(said: dict[str, str]) -> None:
    assert said["readers"] == "['ada', 'bob']"


def test_a_new_event_is_in_the_history_of_the_gateway(said: dict[str, str]) -> None:
    assert said["http"] == "[('hello', 'left')]"
