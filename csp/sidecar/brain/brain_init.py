"""The initial state of a brain, from its relay's greeting and its predecessor's handover."""

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

import msgspec

from csp.clis.profile import Profile
from csp.clis.registry import adapter_names
from csp.sidecar.capture import follower
from csp.sidecar.capture.screen_capture import AwaitedReply
from csp.sidecar.inject.message_progress import SentPrompt
from csp.sidecar.relay import relay_frames
from csp.sidecar.run_record import SidecarRecord
from csp.sidecar.state.pane_state import PaneState
from csp.terminal.generic_screen import Surround

log = logging.getLogger(__name__)

_VARIABLE: Final = re.compile(r"\$(\w+)")
_TOUCHED: Final = frozenset({"PASTED", "SHOWN", "SENT", "CLEARING", "STUCK"})


class BrainHandover(msgspec.Struct, frozen=True):
    """The state that one brain process hands over to its successor through the relay."""

    #: The state of the follower at a time when the room had received everything that resulted from it.
    follower: bytes = b""
    tags: dict[str, SentPrompt] = {}
    #: The message that was being typed, and its phase.
    typing: tuple[str, str] | None = None
    is_ready: bool = False
    is_begun: bool = False
    has_had_composer: bool = False
    #: Whether the program may have been prompted, and the screen rows whose busy indicators are ignored.
    was_asked: bool = False
    idle_rows: tuple[str, ...] = ()
    is_disk_full: bool = False
    is_paused: bool = False
    unsettled: AwaitedReply | None = None
    #: The text shown around the program's conversation.
    surround: Surround | None = None
    #: Controls that were started, terminal modes that are set only once, and the bytes typed by a person.
    controls: tuple[str, ...] = ()
    modes: tuple[bool, bool] = (False, False)
    typed: int = 0

    def dump(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def load(cls, data: bytes) -> Self | None:
        """Decode a note; None if it is empty or invalid."""
        try:
            return msgspec.json.decode(data, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def stands(self, message: str) -> bool:
        """Return whether `message` may be in the composer or was submitted without confirmation."""
        return self.typing is not None and self.typing[0] == message and self.typing[1] in _TOUCHED


class BrainStart(msgspec.Struct, frozen=True):
    """The relay's greeting."""

    pid: int
    rows: int
    cols: int
    starts: int
    held_keys: bool = False
    #: The child's end of its terminal.
    tty: str = ""
    note: BrainHandover | None = None

    @property
    def is_new_cli(self) -> bool:
        return self.starts == 1

    @classmethod
    def read(cls, early: list[tuple[bytes, bytes]]) -> Self:
        """Decode the greeting from a relay's first frames."""
        found = dict(early)
        start = msgspec.json.decode(found[relay_frames.START], type=cls)
        note = BrainHandover.load(found[relay_frames.NOTE]) if relay_frames.NOTE in found else None
        return msgspec.structs.replace(start, note=note)


def has_credentials(profile: Profile, env: Mapping[str, str]) -> bool:
    """Return whether a variable or a file indicates that the CLI is logged in."""
    for name in profile.credentials:
        path = name.replace("~", env.get("HOME", ""), 1)
        path = _VARIABLE.sub(lambda found: env.get(found[1], ""), path)
        if Path(path).is_file() if "/" in name else env.get(name):
            return True
    return False


def pane_of(start: BrainStart, profile: Profile, env: Mapping[str, str]) -> PaneState:
    """Return the pane in the state that the previous brain left."""
    note = start.note or BrainHandover()
    pane = PaneState(profile, start.rows, start.cols)
    pane.is_login_known = has_credentials(profile, env)
    pane.is_ready, pane.has_had_composer = note.is_ready, note.has_had_composer
    pane.was_asked, pane.idle_rows = note.was_asked, note.idle_rows
    pane.set_modes(note.modes)
    pane.ledger.typed = note.typed
    pane.tty = start.tty
    return pane


def follower_of(capture: str, run: SidecarRecord, dumped: bytes) -> follower.Follower | None:
    """Return the follower of the CLI's record, starting where the previous brain ended."""
    if not run.spool or capture not in adapter_names():
        return None
    followed = follower.FollowedRun(
        kind=capture,
        # The relay and all its descendants, because a restarted CLI is a new process.
        child_pid=run.pid,
        since=run.started,
        session_id=run.session_id,
        transcript_hint=run.transcript,
        spool_dir=run.spool,
    )
    try:
        return follower.Follower(followed, dumped)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        log.warning("note from the previous brain could not be read")
        return follower.Follower(followed)


def stands_in(paths: list[str], tag: str) -> bool | None:
    """Return whether one of these transcripts contains the prompt `tag`; None if there are none."""
    files = [path for path in map(Path, paths) if path.is_file()]
    if not files:
        return None
    return any(f"#{tag}]".encode() in path.read_bytes() for path in files)
