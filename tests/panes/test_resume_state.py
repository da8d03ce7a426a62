"""What the next start is told: who takes part, which conversations go on."""

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from csp.panes.members import PaneMember
from csp.panes.resume_state import (
    SavedConversation,
    conversations_of,
    forget_conversation,
    load_conversations,
    resumed,
    save_conversations,
)
from csp.panes.room_processes import RoomProcesses
from csp.sidecar.run_record import SidecarRecord, agents_dir

OLD = "11111111-1111-4111-8111-111111111111"
NEW = "22222222-2222-4222-8222-222222222222"


def save_run(
    state: Path,
    agent: str,
    transcripts: list[Path],
    profile: str = "claude",
    cwd: str = "/p",
    hint: Path | None = None,
    session: str = OLD,
) -> None:
    folder = agents_dir(state, "default") / agent
    SidecarRecord(
        name=agent,
        agent=agent,
        token="t",
        url="u",
        room="default",
        role="agent",
        pid=1,
        profile=f"/profiles/{profile}.toml",
        argv=[],
        env={},
        cwd=cwd,
        folder=str(folder),
        started=0.0,
        session_id=session,
        transcript=str(hint or ""),
        transcripts=[str(path) for path in transcripts],
    ).save(folder)


def transcript(folder: Path, name: str, at: float, text: str = "{}\n") -> Path:
    path = folder / name
    path.write_text(text)
    os.utime(path, (at, at))
    return path


def test_the_conversation_is_the_one_that_was_written_to_last(tmp_path: Path) -> None:
    older, newer = transcript(tmp_path, f"{OLD}.jsonl", 100), transcript(tmp_path, f"{NEW}.jsonl", 200)
    save_run(tmp_path, "claude", [newer, older])

    assert conversations_of(RoomProcesses(tmp_path, "default").sidecars()) == {
        "claude": SavedConversation(session=NEW, profile="claude", cwd="/p", token="t", transcript=str(newer))
    }


def test_codex_and_gemini_name_their_sessions_in_their_own_way(tmp_path: Path) -> None:
    rollout = transcript(tmp_path, f"rollout-2026-01-01T00-00-00-{NEW}.jsonl", 1)
    chat = transcript(tmp_path, "session-2026-01-01T00-00-abcd.json", 1, json.dumps({"sessionId": OLD}))
    save_run(tmp_path, "codex", [rollout], "codex")
    save_run(tmp_path, "gemini", [chat], "gemini")

    assert {
        agent: row.session
        for agent, row in conversations_of(RoomProcesses(tmp_path, "default").sidecars()).items()
    } == {
        "codex": NEW,
        "gemini": OLD,
    }


def test_what_was_never_begun_is_not_gone_on_with(tmp_path: Path) -> None:
    save_run(tmp_path, "claude", [tmp_path / f"{OLD}.jsonl"])

    assert conversations_of(RoomProcesses(tmp_path, "default").sidecars()) == {
        "claude": SavedConversation(profile="claude", cwd="/p", token="t")
    }


def test_a_transcript_that_no_brain_has_noted_is_found_where_that_is_certain(tmp_path: Path) -> None:
    gemini, codex = tmp_path / "gemini", tmp_path / "codex"
    (gemini / "x" / "chats").mkdir(parents=True)
    codex.mkdir()
    transcript(gemini / "x" / "chats", "session-a.json", 1, json.dumps({"sessionId": OLD}))
    transcript(gemini / "x" / "chats", "session-b.json", 2, json.dumps({"sessionId": NEW}))
    transcript(codex, f"rollout-{NEW}.jsonl", 1, json.dumps({"cwd": "/p"}))
    save_run(tmp_path, "gemini", [], "gemini", hint=gemini)
    save_run(tmp_path, "codex", [], "codex", hint=codex, session="")
    save_run(tmp_path, "claude", [], "claude", hint=transcript(tmp_path, f"{OLD}.jsonl", 1))
    found = {
        agent: row.session
        for agent, row in conversations_of(RoomProcesses(tmp_path, "default").sidecars()).items()
    }
    transcript(codex, f"rollout-{OLD}.jsonl", 1, json.dumps({"cwd": "/p"}))

    assert found == {"gemini": OLD, "codex": NEW, "claude": OLD}
    assert conversations_of(RoomProcesses(tmp_path, "default").sidecars())["codex"].session == ""


def test_conversations_are_kept_for_their_user_alone_and_added_to(tmp_path: Path) -> None:
    path = tmp_path / "agents.json"
    first = SavedConversation(session=OLD, profile="claude", cwd="/p", token="t", transcript="/t")
    second = SavedConversation(session=NEW, profile="codex", cwd="/p", token="t", transcript="/t")
    save_conversations(path, {"claude": first})
    save_conversations(path, {"codex": second})

    assert load_conversations(path) == {"claude": first, "codex": second}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    save_conversations(path, {"codex": SavedConversation(profile="codex", cwd="/p", token="new")})
    assert load_conversations(path)["codex"] == replace(second, token="new")
    save_conversations(path, {"codex": SavedConversation(profile="codex", cwd="/other", token="new")})
    assert load_conversations(path)["codex"].session == ""
    forget_conversation(path, "claude")
    assert load_conversations(path)["claude"].session == ""
    path.write_text('{"claude": 3, "codex": {"session": "x"}}')
    assert load_conversations(path) == {}


@pytest.mark.parametrize(
    ("command", "profile", "expected"),
    [
        (("claude", "--model", "x"), "claude", ("claude", "--resume", NEW, "--model", "x")),
        (("codex", "-m", "x"), "codex", ("codex", "-m", "x", "resume", NEW)),
        (("gemini",), "gemini", ("gemini", "--resume", NEW)),
        (("claude", "--continue"), "claude", ("claude", "--continue")),
        (("gemini",), "claude", ("gemini",)),
    ],
)
def test_a_cli_goes_on_with_its_conversation(
    tmp_path: Path, command: tuple[str, ...], profile: str, expected: tuple[str, ...]
) -> None:
    path = transcript(tmp_path, "t.jsonl", 1)
    member = PaneMember(name="a", agent="a", command=command, cwd=Path("/p"), profile=command[0])
    known = {"a": SavedConversation(session=NEW, profile=profile, cwd="/p", token="t", transcript=str(path))}

    assert resumed(member, Path("/p"), known) == expected
    assert resumed(member, Path("/other"), known) == command
    assert resumed(member, Path("/p"), {}) == command
    path.unlink()
    assert resumed(member, Path("/p"), known) == command


# --- what is read again ---------------------------------------------------------------------------


def test_a_conversation_of_before_this_run_is_not_its_own(tmp_path: Path) -> None:
    codex = tmp_path / "codex"
    codex.mkdir()
    transcript(codex, f"rollout-{OLD}.jsonl", -1, json.dumps({"cwd": "/p"}))
    save_run(tmp_path, "codex", [], "codex", hint=codex, session="")

    assert conversations_of(RoomProcesses(tmp_path, "default").sidecars())["codex"].session == ""


def test_what_a_person_chose_for_the_conversation_stands(tmp_path: Path) -> None:
    path = transcript(tmp_path, "t.jsonl", 1)
    flags = {
        "claude": ["-r", "--resume", "-c", "--continue", "--session-id"],
        "codex": ["resume", "fork"],
        "gemini": ["-r", "--resume", "--session-id"],
    }
    for cli, chosen in flags.items():
        before = SavedConversation(session=NEW, profile=cli, cwd="/p", token="t", transcript=str(path))
        for flag in chosen:
            member = PaneMember(name="a", agent="a", command=(cli, flag), cwd=Path("/p"))

            assert resumed(member, Path("/p"), {"a": before}) == (cli, flag)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["claude"], ["claude", "--resume", NEW]),
        (["claude", "resume"], ["claude", "--resume", NEW, "resume"]),
        (["codex", "-c", "a=b"], ["codex", "-c", "a=b", "resume", NEW]),
    ],
)
def test_a_conversation_that_nobody_chose_is_resumed(
    command: list[str], expected: list[str], tmp_path: Path
) -> None:
    path = transcript(tmp_path, "t.jsonl", 1)
    before = SavedConversation(session=NEW, profile=command[0], cwd="/p", token="t", transcript=str(path))
    member = PaneMember(name="a", agent="a", command=tuple(command), cwd=Path("/p"))

    assert resumed(member, Path("/p"), {"a": before}) == tuple(expected)
    assert resumed(replace(member, provider="openai"), Path("/p"), {"a": before}) == tuple(command)


def test_a_room_that_was_never_up_gets_no_file(tmp_path: Path) -> None:
    talk = SavedConversation(profile="p", cwd="/p", token="t")
    save_conversations(tmp_path / "none" / "agents.json", {"a": talk})
    assert not (tmp_path / "none").exists()
    path = tmp_path / "agents.json"
    save_conversations(path, {"a": talk})
    before = path.stat().st_mtime_ns
    save_conversations(path, {"a": talk})

    assert path.stat().st_mtime_ns == before
    forget_conversation(path, "nobody")
    assert load_conversations(path) == {"a": talk}
    assert [entry.name for entry in tmp_path.iterdir()] == ["agents.json"]


def test_a_later_session_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "agents.json"
    for session in (OLD, NEW):
        talk = SavedConversation(
            session=session, profile="claude", cwd="/p", token="t", transcript=f"/{session}"
        )
        save_conversations(path, {"claude": talk})

    assert load_conversations(path)["claude"] == talk


def test_another_cli_under_the_same_name_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "agents.json"
    save_conversations(path, {"a": SavedConversation(session=OLD, profile="claude", cwd="/p", token="t")})
    save_conversations(path, {"a": SavedConversation(profile="codex", cwd="/p", token="t")})

    assert load_conversations(path)["a"].session == ""


def test_a_transcript_is_known_by_its_own_place_not_by_a_way_to_it(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    path = transcript(real, f"copy-of-{OLD}-{NEW}.jsonl", 1)
    (tmp_path / "overlay").symlink_to(real)
    save_run(tmp_path, "claude", [tmp_path / "overlay" / path.name])
    found = conversations_of(RoomProcesses(tmp_path, "default").sidecars())["claude"]

    assert (found.session, found.transcript) == (NEW, str(path))


def test_a_transcript_as_old_as_the_run_is_its_own(tmp_path: Path) -> None:
    codex = tmp_path / "codex"
    codex.mkdir()
    transcript(codex, f"rollout-{OLD}.jsonl", 0, json.dumps({"cwd": "/p"}))
    transcript(codex, f"rollout-{NEW}.jsonl", 0, json.dumps({"cwd": "/other"}))
    save_run(tmp_path, "codex", [], "codex", hint=codex, session="")

    assert conversations_of(RoomProcesses(tmp_path, "default").sidecars())["codex"].session == OLD


def test_only_the_head_of_a_transcript_is_read(tmp_path: Path) -> None:
    late = " " * 5000 + json.dumps({"sessionId": OLD})
    save_run(tmp_path, "gemini", [transcript(tmp_path, "session-a.json", 1, late)], "gemini")
    found = conversations_of(RoomProcesses(tmp_path, "default").sidecars())["gemini"]

    assert (found.session, found.transcript) == ("", "")


def test_a_profile_that_was_chosen_counts_for_the_conversation(tmp_path: Path) -> None:
    path = transcript(tmp_path, "t.jsonl", 1)
    known = {"a": SavedConversation(session=NEW, profile="claude", cwd="/p", token="t", transcript=str(path))}
    own = PaneMember(name="a", agent="a", command=("my-claude",), cwd=Path("/p"), profile="claude")

    assert resumed(own, Path("/p"), known) == ("my-claude", "--resume", NEW)
    assert resumed(replace(own, profile=""), Path("/p"), known) == ("my-claude",)
