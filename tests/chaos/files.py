"""Damage one file of a room, start the room, and compare what it knows with what can still be read.

What was acknowledged and stands in an intact line of the journal must be in the history once and in order,
whatever happened to any other file. A room that does not start says why in one line, and has lost nothing:
with the file put back it starts.
"""

import atexit
import random
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

from csp.errors import CspError
from csp.http_client import oldest
from csp.protocol.events import AnyEvent, MessageEvent, NoteAdded, decode_event, is_intact, type_of
from tests.chaos.cases import Outcome
from tests.chaos.damage import KINDS
from tests.chaos.faults import Plan
from tests.chaos.room import ChaosRoom
from tests.chaos.talk import all_notes
from tests.review.playing import Run
from tests.rooms import LiveRoom
from tests.waiting import wait_until_sync

#: Without these a room does not start, and says so.
NEEDED: Final = ("secret", "journal.jsonl", "journal.lock")
#: Whether the room has had a run and finds notes by meaning, which takes a while to make.
IS_RICH = True
_SPOKEN: Final = ("human_message", "agent_call", "agent_response")


@cache
def template() -> Path:
    """Return a folder with a room that has been used; it is made once."""
    folder = Path(tempfile.mkdtemp(prefix="chaos-template-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    room = ChaosRoom(folder / "room")
    try:
        room.begin(Plan(snapshot_every=15, meaning=IS_RICH))
        assert room.comes_up(), room.said()
        _use(room)
        # As a kill leaves it: while it stands still, no file vanishes or changes under the copy.
        with room.frozen():
            shutil.copytree(room.history_dir, folder / "killed", symlinks=True)
        room.end()
        shutil.copytree(room.history_dir, folder / "ended", symlinks=True)
    finally:
        room.stop()
    return folder


def _use(room: ChaosRoom) -> None:
    client = room.client()
    run = Run(cast(LiveRoom, room)) if IS_RICH else None
    token = run.tokens["claude"] if run else client.post("/register", {"agentId": "claude"})["token"]
    for number in range(30):
        sent = client.post("/message", {"to": "all", "content": f"zebra number {number}"})
        if number % 3:
            room.client(token).post("/delivery", {"id": sent["id"], "state": "confirmed"})
        client.post("/board", {"text": f"quagga_{number} runs", "tags": ["animal"]})
    client.post(f"/messages/{sent['id']}/redact")
    client.post("/page/enter", {"code": client.post("/page/link")["code"]})
    if run is not None:
        run.to_execution()
        run.drop("builder", "half.json", b'{"schema_version": "0.1", "sen')
        wait_until_sync(lambda: (room.folder / "board.sqlite").exists(), what="the index of notes")
    wait_until_sync(lambda: client.get("/history", q="zebra")["items"], what="the search")


def play(folder: Path, seed: str) -> Outcome:
    """Damage a file of a room, start it, use it, start it again."""
    draw = random.Random(seed)
    outcome = Outcome()
    room = ChaosRoom(folder)
    shutil.copytree(template() / draw.choice(("killed", "ended")), room.history_dir, symlinks=True)
    path = _pick(room.folder, draw)
    kind = draw.choice(list(KINDS))
    name = str(path.relative_to(room.folder))
    kept = folder / "kept"
    shutil.copy2(path, kept)
    KINDS[kind](path, draw)
    outcome.add(damaged=1)
    try:
        problems = _problems(room, outcome, path, kept)
    except (CspError, AssertionError) as error:
        problems = [f"{type(error).__name__}: {error}"]
    finally:
        room.stop()
    outcome.wrong += [f"{name}, {kind}: {problem}" for problem in problems]
    return outcome


def _pick(folder: Path, draw: random.Random) -> Path:
    """Draw a file; each name at the top is as likely as all files of a folder together."""
    tops = sorted(folder.iterdir())
    journal = folder / "journal.jsonl"
    while True:
        top = draw.choice([*tops, journal, journal])
        files = [top] if top.is_file() else sorted(one for one in top.rglob("*") if one.is_file())
        if files:
            return draw.choice(files)


def _problems(room: ChaosRoom, outcome: Outcome, path: Path, kept: Path) -> list[str]:
    expected = intact_events(room.folder / "journal.jsonl")
    # The model takes seconds to load, and looks at one file alone.
    room.begin(Plan(meaning=path.name.startswith("board.")))
    if room.comes_up():
        return _used(room, expected)
    outcome.add(refused=1)
    problems = _refusal(room, path)
    _put_back(path, kept)
    expected = intact_events(room.folder / "journal.jsonl")
    room.begin()
    if not room.comes_up():
        return [*problems, f"it does not start with the file put back: {room.said()[-300:]!r}"]
    return problems + _used(room, expected)


def _refusal(room: ChaosRoom, path: Path) -> list[str]:
    """Return what is wrong about a start that was refused."""
    said = room.said().splitlines()
    problems = [] if room.ended() == 1 else [f"it ended with {room.ended()}"]
    if not any(line.startswith("csp: ") for line in said):
        problems.append(f"it does not say why it does not start: {said[-3:]}")
    if path.name not in NEEDED:
        problems.append(f"it does not start without this file: {said[-1:]}")
    return problems + ([f"traceback: {room.traceback()}"] if room.traceback() else [])


def _put_back(path: Path, kept: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    shutil.copy2(kept, path)


def _used(room: ChaosRoom, expected: list[AnyEvent]) -> list[str]:
    """Return what is wrong with a room that has started, now and after it was used and started again."""
    problems = _differences(room, expected)
    client = room.client()
    for q in ("zebra", "quagga_3"):
        client.get("/history", q=q)
        client.get("/board/search", q=q)
    for where in ("/runs", "/sessions", "/agents", "/queue", "/usage", "/mode"):
        client.get(where)
    sent = client.post("/message", {"to": "all", "content": "zebra after the damage"})
    client.post("/board", {"text": "quagga_after runs"})
    if room.end() != 0:
        problems.append("it does not end in order")
    room.begin()
    if not room.comes_up():
        return [*problems, f"it does not start again: {room.said()[-300:]!r}"]
    problems += _differences(room, expected)
    after = [item for item in oldest(room.client()) if item["id"] == sent["id"]]
    if len(after) != 1:
        problems.append(f"what was sent after the damage is there {len(after)} times")
    return problems + ([f"traceback: {room.traceback()}"] if room.traceback() else [])


def _differences(room: ChaosRoom, expected: list[AnyEvent]) -> list[str]:
    """Compare what the room says with what stood in the intact lines of its journal before it started."""
    client = room.client()
    spoken = [
        (one.seq, one.text) for one in expected if isinstance(one, MessageEvent) and type_of(one) in _SPOKEN
    ]
    shown = [(item["seq"], item["text"]) for item in oldest(client, types=",".join(_SPOKEN))]
    before = shown[: len(spoken)]
    problems = [f"the history differs: {_first_difference(spoken, before)}"] if spoken != before else []
    notes = [(one.id, one.text) for one in expected if isinstance(one, NoteAdded)]
    known = {(item["id"], item["text"]) for item in all_notes(client)}
    lacking = [note for note in notes if note not in known]
    return problems + ([f"the board lacks {lacking[:2]}"] if lacking else [])


def _first_difference(one: list[Any], other: list[Any]) -> str:
    for left, right in zip(one, other, strict=False):
        if left != right:
            return f"{left} in the journal, {right} in the history"
    return f"{len(one)} in the journal, {len(other)} in the history"


def intact_events(path: Path) -> list[AnyEvent]:
    """Return the events of a journal in the order of their numbers, of two with one number the first."""
    found: dict[int, AnyEvent] = {}
    if not path.is_file():
        return []
    for line in path.read_bytes().split(b"\n"):
        if is_intact(line):
            event = decode_event(line)
            found.setdefault(event.seq, event)
    return [found[seq] for seq in sorted(found)]
