"""The record of one sidecar, as its brains have it."""

import os
from pathlib import Path
from typing import Final

from msgspec.structs import asdict, replace

from csp.sidecar.record_file import write_record
from csp.sidecar.run_record import SidecarRecord, agents_dir

RUN: Final = SidecarRecord(
    name="ada", agent="ada-2", token="t", url="http://room", room="default", role="agent", pid=os.getpid(),
    profile="/p/claude.toml", argv=["c"], env={"A": "1"}, cwd="/", folder="/f", started=1.0,
)  # fmt: skip
GONE: Final = 2**22 + 1


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    full = replace(RUN, transcripts=["a"], earlier=["b"], room_id="r-7", injection_timeout_s=3.5, asked=["c"])
    full.save(tmp_path)

    assert SidecarRecord.load(tmp_path) == full


def test_a_record_without_the_newer_fields_has_their_defaults(tmp_path: Path) -> None:
    needed = ("name", "agent", "token", "url", "room", "role", "pid", "profile", "argv", "env", "cwd")
    write_record(str(tmp_path), {name: getattr(RUN, name) for name in (*needed, "folder", "started")})
    loaded = SidecarRecord.load(tmp_path)

    assert loaded == RUN
    assert (RUN.injection_timeout_s, RUN.room_id, RUN.allow_shell) == (10.0, "", False)
    assert (RUN.session_id, RUN.spool, RUN.transcript, RUN.initial_prompt) == ("", "", "", "")
    assert (RUN.transcripts, RUN.earlier, RUN.asked) == ([], [], [])


def test_a_record_of_another_version_may_have_other_fields(tmp_path: Path) -> None:
    write_record(str(tmp_path), asdict(RUN) | {"journal": 12345})

    assert SidecarRecord.load(tmp_path) == RUN


def test_what_is_no_record_is_none(tmp_path: Path) -> None:
    assert SidecarRecord.load(tmp_path) is None
    write_record(str(tmp_path), {"pid": 1, "name": "ada"})
    assert SidecarRecord.load(tmp_path) is None
    write_record(str(tmp_path), {"pid": 1, "unknown": 1})
    assert SidecarRecord.load(tmp_path) is None


def test_a_sidecar_runs_while_its_relay_lives() -> None:
    assert RUN.is_running
    assert not replace(RUN, pid=GONE).is_running


def test_the_folders_of_a_room_lie_beside_its_file() -> None:
    assert agents_dir(Path("/state"), "default") == Path("/state/default.agents")
