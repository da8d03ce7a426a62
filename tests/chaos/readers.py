"""Damage the files that others than the gateway read, and read them: sidecars, panes, commands, mailboxes.

Whatever stands in such a file, its reader returns in time, or raises one of our own errors.
"""

import contextlib
import json
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from csp.clis.hook_spool import HookSpool
from csp.config import load_settings
from csp.errors import CspError
from csp.human.saved_state import SavedState
from csp.panes.resume_state import conversations_of, load_conversations
from csp.panes.room_processes import RoomProcesses
from csp.review.mailbox import Mailbox
from csp.review.run_folders import RunFolders
from csp.review.run_git import Git
from csp.room_registry import find_room, running_rooms
from csp.sidecar.record_file import left_behind, read_record
from csp.sidecar.run_record import SidecarRecord
from tests.chaos.cases import Outcome
from tests.chaos.damage import KINDS

TIMES: Final = 25
#: Nobody but its user can put a pipe there, who would be the one to wait.
_KINDS: Final = [kind for kind in KINDS if kind != "a pipe"]
_HANGS_S: Final = 10


class _Hangs(BaseException):
    """Raised where nobody can take it for an error of a file."""


class Reader(NamedTuple):
    """A file below a folder, what stands in it when it is sound, and who reads it."""

    path: str
    content: str
    read: Callable[[Path], object]


_RUN: Final = {
    **dict.fromkeys(("name", "agent", "token", "url", "room", "role", "profile", "cwd", "folder"), "x"),
    "pid": 4_000_000,
    "argv": ["x"],
    "env": {"A": "b"},
    "started": 1.0,
    "transcripts": ["/nowhere"],
}
_HOOK: Final = {"hook_event_name": "Stop", "session_id": "s", "tool_input": {"a": [1, 2]}}
_LETTER: Final = {
    "schema_version": "0.1",
    "timestamp": "2026-01-01T00:00:00Z",
    "sender": "builder",
    "run_id": "r-1",
    "message_type": "PLAN_PROPOSED",
    "body": {"summary": "mend it", "steps": ["one", "two"]},
}
_ROOM: Final = {
    "room": "default",
    "url": "http://127.0.0.1:1",
    "token": "t",
    "pid": 4_000_000,
    "supervisor": None,
    "dir": "/",
    "history": "/",
    "started": 1.0,
}
_MEMBER: Final = [{"name": "claude", "agent": "claude", "command": ["claude"], "cwd": "/"}]
_TOML: Final = '[room]\nname = "default"\nport = 8765\n\n[[agent]]\nname = "claude"\ncommand = "claude"\n'


def _settings(folder: Path) -> object:
    env = {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder), "CSP_AGENT": "claude", "CSP_ROOM": "default"}
    return load_settings(env=env, cwd=folder)


def _find(folder: Path) -> object:
    env = {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder), "CSP_GATEWAY_URL": "http://127.0.0.1:1"}
    settings = load_settings(env=env | {"CSP_AGENT": "claude", "CSP_ROOM": "default"}, cwd=folder)
    return find_room(settings, folder)


def _typed(folder: Path) -> None:
    memory = SavedState(folder)
    memory.typed()
    memory.add_typed("hello")
    memory.typed()


def _seen(folder: Path) -> None:
    memory = SavedState(folder)
    memory.last_seen()
    memory.save_seen(7)


def _records(folder: Path) -> None:
    read_record(str(folder / "csp/default.agents/claude"))
    left_behind(str(folder / "csp"), "default", "x")
    run = SidecarRecord.load(folder / "csp/default.agents/claude")
    if run is not None:
        run.is_running  # noqa: B018  # what is asked for is that it does not raise
    conversations_of(RoomProcesses(folder / "csp", "default").sidecars())


def _spool(folder: Path) -> None:
    spool = HookSpool(folder / "spool")
    spool.read_new()
    spool.settle()


def _mailbox(folder: Path) -> None:
    mailbox = Mailbox(folder / "mailbox", clock=lambda: 1e9)
    mailbox.make()
    for letter in list(mailbox.letters()):
        mailbox.refused(letter, "no")


def _run_folder(folder: Path) -> None:
    folders = RunFolders(folder / "runs", Git({}))
    folders.names()
    folders.seen("r-1")
    with contextlib.suppress(CspError):
        folders.edited_plan("r-1")


READERS: Final[dict[str, Reader]] = {
    "the record of a sidecar": Reader("csp/default.agents/claude/run.json", json.dumps(_RUN), _records),
    "an event of a hook": Reader("spool/123.json", json.dumps(_HOOK), _spool),
    "what a person typed": Reader("typed", '"one"\n"two"\n"three"\n', _typed),
    "what a person has seen": Reader("seen", "123", _seen),
    "an announced room": Reader("csp/default.json", json.dumps(_ROOM), lambda at: running_rooms(at / "csp")),
    "a line-up": Reader(
        "default.lineup", json.dumps(_MEMBER), lambda at: RoomProcesses(at, "default").lineup()
    ),
    "conversations": Reader(
        "agents.json",
        json.dumps({"claude": {"profile": "claude", "cwd": "/", "token": "t"}}),
        lambda at: load_conversations(at / "agents.json"),
    ),
    "the token of an agent": Reader("csp/default.agents/claude.token", "claude.1." + "0" * 40, _find),
    "a configuration": Reader("csp.toml", _TOML, _settings),
    "a letter": Reader("mailbox/builder/a.json", json.dumps(_LETTER), _mailbox),
    "the state of a run": Reader("runs/r-1/run.json", json.dumps({"seq": 5, "plan": None}), _run_folder),
    "the plan of a run": Reader(
        "runs/r-1/plan.json", json.dumps({"steps": ["a"], "summary": "b"}), _run_folder
    ),
}


def play(folder: Path, seed: str) -> Outcome:
    """Damage files and read them, a few times."""
    draw = random.Random(seed)
    outcome = Outcome()
    for _ in range(TIMES):
        name, kind = draw.choice(list(READERS)), draw.choice(_KINDS)
        problem = damaged_and_read(folder, READERS[name], kind, draw)
        outcome.add(damaged=1)
        if problem:
            outcome.wrong.append(f"{name}, {kind}: {problem}")
    return outcome


def damaged_and_read(folder: Path, reader: Reader, kind: str, draw: random.Random) -> str:
    """Make the file, damage it, read it; return what went wrong."""
    shutil.rmtree(folder, ignore_errors=True)
    path = folder / reader.path
    path.parent.mkdir(parents=True, mode=0o700)
    path.write_text(reader.content)
    KINDS[kind](path, draw)
    try:
        with deadline():
            reader.read(folder)
    except CspError:
        return ""
    except _Hangs:
        return "it hangs"
    except Exception as error:  # whatever else it is, it is what is looked for
        return f"{type(error).__name__}: {str(error)[:200]}"
    return ""


@contextlib.contextmanager
def deadline() -> Iterator[None]:
    """Raise what no reader catches if the body takes too long."""

    def ring(number: int, frame: object) -> None:
        raise _Hangs

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(_HANGS_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
