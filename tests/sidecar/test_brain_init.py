"""What a brain makes of its greeting and of the note of the brain before it."""

from pathlib import Path
from typing import Any

import pytest

from csp.clis.profile import load_profile
from csp.sidecar.brain.brain_init import BrainHandover, BrainStart, follower_of, pane_of, stands_in
from csp.sidecar.capture.screen_capture import AwaitedReply
from csp.sidecar.inject.message_progress import SentPrompt
from csp.sidecar.run_record import SidecarRecord

GREETING = b'{"pid": 7, "rows": 30, "cols": 90, "starts": 2, "held_keys": true}'
NOTE = BrainHandover(
    tags={"7": SentPrompt("m7", "t-1")}, typing=("m7", "PASTED"), is_ready=True, is_begun=True,
    has_had_composer=True, is_disk_full=True, is_paused=True,
    unsettled=AwaitedReply(tag="7", header="h", footer="f", mark=9),
    controls=("c1",), modes=(True, True), typed=5, follower=b"{}",
)  # fmt: skip


def test_a_greeting_is_read_with_the_note() -> None:
    start = BrainStart.read([(b"O", b"out"), (b"S", GREETING), (b"N", NOTE.dump())])

    assert (start.pid, start.rows, start.cols, start.starts, start.held_keys) == (7, 30, 90, 2, True)
    assert start.note == NOTE
    assert not start.is_new_cli


def test_the_first_brain_has_no_note() -> None:
    start = BrainStart.read([(b"S", GREETING.replace(b'"starts": 2', b'"starts": 1'))])

    assert start.is_new_cli and start.note is None
    assert BrainHandover.load(b"nonsense") is None and BrainHandover.load(b"\xff") is None


def test_the_pane_is_as_the_brain_before_knew_it() -> None:
    pane = pane_of(BrainStart.read([(b"S", GREETING), (b"N", NOTE.dump())]), load_profile("claude"), {})

    assert pane.is_ready and pane.has_had_composer
    assert pane.modes == (True, True)
    assert pane.ledger.typed == 5
    assert (len(pane.screen.rows), pane.screen.cols) == (30, 90)
    fresh = pane_of(BrainStart.read([(b"S", GREETING)]), load_profile("claude"), {})
    assert not fresh.is_ready and fresh.modes == (False, False)


@pytest.mark.parametrize(
    ("profile", "env", "is_known"),
    [
        ("claude", {}, False),
        ("claude", {"ANTHROPIC_API_KEY": "k"}, True),
        ("claude", {"ANTHROPIC_API_KEY": ""}, False),
        ("claude", {"HOME": "home"}, True),
        ("claude", {"HOME": "elsewhere"}, False),
        ("claude", {"CLAUDE_CONFIG_DIR": "home/.claude"}, True),
        ("shell", {"ANTHROPIC_API_KEY": "k", "HOME": "home"}, False),
    ],
)
def test_a_login_is_known_by_a_variable_or_a_file(
    tmp_path: Path, profile: str, env: dict[str, str], is_known: bool
) -> None:
    file = tmp_path / "home" / ".claude" / ".credentials.json"
    file.parent.mkdir(parents=True)
    file.touch()
    places = {
        name: str(tmp_path / value) if name != "ANTHROPIC_API_KEY" else value for name, value in env.items()
    }
    pane = pane_of(BrainStart.read([(b"S", GREETING)]), load_profile(profile), places)

    assert pane.is_login_known is is_known


@pytest.mark.parametrize(
    ("phase", "stands"),
    [("WAITING", False), ("ANNOUNCED", False), ("PASTED", True), ("SHOWN", True), ("SENT", True),
     ("CLEARING", True), ("STUCK", True), ("DONE", False)],
)  # fmt: skip
def test_what_may_stand_in_the_composer(phase: str, stands: bool) -> None:
    note = BrainHandover(typing=("m7", phase))

    assert note.stands("m7") is stands
    assert not note.stands("m8") and not BrainHandover().stands("m7")


def run(folder: Path, **fields: Any) -> SidecarRecord:
    known: dict[str, Any] = {
        "name": "a", "agent": "a", "token": "", "url": "", "room": "r", "role": "agent", "pid": 77,
        "profile": "", "argv": [], "env": {}, "cwd": "", "folder": str(folder), "started": 5.0,
        "session_id": "s", "transcript": str(folder / "t.jsonl"), "spool": str(folder),
    }  # fmt: skip
    return SidecarRecord(**(known | fields))


def test_the_record_of_the_run_is_followed_from_its_start(tmp_path: Path) -> None:
    follower = follower_of("plain", run(tmp_path), b"")

    assert follower is not None
    followed = follower.run
    assert (followed.kind, followed.child_pid, followed.since) == ("plain", 77, 5.0)
    assert (followed.session_id, followed.spool_dir) == ("s", str(tmp_path))
    assert followed.transcript_hint == str(tmp_path / "t.jsonl")


def test_a_cli_without_a_record_or_spool_is_not_followed(tmp_path: Path) -> None:
    assert follower_of("screen", run(tmp_path), b"") is None
    assert follower_of("claude", run(tmp_path, spool=""), b"") is None
    assert follower_of("claude", run(tmp_path), b"\xffnonsense") is not None


def test_a_prompt_is_looked_for_in_the_transcripts_there_are(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('"[from human #7]"')
    there, gone = str(tmp_path / "t.jsonl"), str(tmp_path / "gone")

    assert stands_in([gone, there], "7") is True
    assert stands_in([there], "71") is False
    assert stands_in([gone], "7") is None and stands_in([], "7") is None
