"""What the next start is told: conversations, worktrees."""

import json
import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from csp.errors import BadInput, Broken
from csp.panes.lineup import Member
from csp.panes.record import (
    Conversation,
    conversations_of,
    forget_conversation,
    load_conversations,
    load_lineup,
    resumed,
    save_conversations,
    save_lineup,
)
from csp.panes.worktrees import ensure_worktree, remove_worktrees
from csp.sidecar.run import Run, agents_dir

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
    Run(
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

    assert conversations_of(tmp_path, "default") == {
        "claude": Conversation(session=NEW, profile="claude", cwd="/p", token="t", transcript=str(newer))
    }


def test_codex_and_gemini_name_their_sessions_in_their_own_way(tmp_path: Path) -> None:
    rollout = transcript(tmp_path, f"rollout-2026-01-01T00-00-00-{NEW}.jsonl", 1)
    chat = transcript(tmp_path, "session-2026-01-01T00-00-abcd.json", 1, json.dumps({"sessionId": OLD}))
    save_run(tmp_path, "codex", [rollout], "codex")
    save_run(tmp_path, "gemini", [chat], "gemini")

    assert {agent: row.session for agent, row in conversations_of(tmp_path, "default").items()} == {
        "codex": NEW,
        "gemini": OLD,
    }


def test_what_was_never_begun_is_not_gone_on_with(tmp_path: Path) -> None:
    save_run(tmp_path, "claude", [tmp_path / f"{OLD}.jsonl"])

    assert conversations_of(tmp_path, "default") == {
        "claude": Conversation(profile="claude", cwd="/p", token="t")
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
    found = {agent: row.session for agent, row in conversations_of(tmp_path, "default").items()}
    transcript(codex, f"rollout-{OLD}.jsonl", 1, json.dumps({"cwd": "/p"}))

    assert found == {"gemini": OLD, "codex": NEW, "claude": OLD}
    assert conversations_of(tmp_path, "default")["codex"].session == ""


def test_conversations_are_kept_for_their_user_alone_and_added_to(tmp_path: Path) -> None:
    path = tmp_path / "agents.json"
    first = Conversation(session=OLD, profile="claude", cwd="/p", token="t", transcript="/t")
    second = Conversation(session=NEW, profile="codex", cwd="/p", token="t", transcript="/t")
    save_conversations(path, {"claude": first})
    save_conversations(path, {"codex": second})

    assert load_conversations(path) == {"claude": first, "codex": second}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    save_conversations(path, {"codex": Conversation(profile="codex", cwd="/p", token="new")})
    assert load_conversations(path)["codex"] == replace(second, token="new")
    save_conversations(path, {"codex": Conversation(profile="codex", cwd="/other", token="new")})
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
    member = Member(name="a", agent="a", command=command, cwd=Path("/p"), profile=command[0])
    known = {"a": Conversation(session=NEW, profile=profile, cwd="/p", token="t", transcript=str(path))}

    assert resumed(member, Path("/p"), known) == expected
    assert resumed(member, Path("/other"), known) == command
    assert resumed(member, Path("/p"), {}) == command
    path.unlink()
    assert resumed(member, Path("/p"), known) == command


def test_the_lineup_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "default.lineup"
    members = (Member(name="A", agent="a", command=("x", "y"), cwd=Path("/p"), worktree=True),)
    save_lineup(path, members)

    assert load_lineup(path) == members
    path.write_text("[3]")
    assert load_lineup(path) == ()


# --- worktrees ------------------------------------------------------------------------------------

ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_DIR": "/nonexistent",
}


def git(dir: Path, *words: str) -> str:
    env = {name: value for name, value in ENV.items() if not name.startswith("GIT_")}
    settings = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    done = subprocess.run(
        ["git", *settings, *words], cwd=dir, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = tmp_path / "repo"
    (repo / "sub").mkdir(parents=True)
    git(repo, "init", "-q")
    (repo / "sub" / "file").write_text("one")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "first")
    return repo


def test_an_agent_gets_a_worktree_on_a_branch_of_its_own(tmp_path: Path, repo: Path) -> None:
    (repo / "sub" / "file").write_text("not committed")
    place = ensure_worktree(repo / "sub", tmp_path / "history", "default", "ann", ENV)

    assert place == tmp_path / "history" / "worktrees" / "ann" / "sub"
    assert (place / "file").read_text() == "one"
    assert git(place, "branch", "--show-current") == "csp/default/ann"
    assert (repo / "sub" / "file").read_text() == "not committed"


def test_a_worktree_is_used_again_with_the_work_in_it(tmp_path: Path, repo: Path) -> None:
    history = tmp_path / "history"
    (ensure_worktree(repo, history, "default", "ann", ENV) / "work").write_text("mine")
    again = ensure_worktree(repo, history, "default", "ann", ENV)

    assert (again / "work").read_text() == "mine"


def test_a_worktree_removed_by_hand_comes_back_on_its_branch(tmp_path: Path, repo: Path) -> None:
    history = tmp_path / "history"
    place = ensure_worktree(repo, history, "default", "ann", ENV)
    (place / "work").write_text("mine")
    git(place, "add", ".")
    git(place, "commit", "-qm", "work")
    subprocess.run(["rm", "-r", str(place)], check=True)

    assert (ensure_worktree(repo, history, "default", "ann", ENV) / "work").read_text() == "mine"


def test_purging_keeps_work_that_is_not_committed(tmp_path: Path, repo: Path) -> None:
    history = tmp_path / "history"
    dirty = ensure_worktree(repo, history, "default", "ann", ENV)
    clean = ensure_worktree(repo, history, "default", "ben", ENV)
    (dirty / "work").write_text("mine")

    assert remove_worktrees(history, ENV) == [dirty]
    assert (dirty / "work").exists() and not clean.exists()


def test_no_repository_is_a_clear_error(tmp_path: Path, repo: Path) -> None:
    with pytest.raises(BadInput, match="worktree needs a git repository"):
        ensure_worktree(tmp_path, tmp_path / "history", "default", "ann", ENV)
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    with pytest.raises(BadInput, match="worktree needs a commit"):
        ensure_worktree(empty, tmp_path / "history", "default", "ann", ENV)


# --- what is read again ---------------------------------------------------------------------------


def test_a_conversation_of_before_this_run_is_not_its_own(tmp_path: Path) -> None:
    codex = tmp_path / "codex"
    codex.mkdir()
    transcript(codex, f"rollout-{OLD}.jsonl", -1, json.dumps({"cwd": "/p"}))
    save_run(tmp_path, "codex", [], "codex", hint=codex, session="")

    assert conversations_of(tmp_path, "default")["codex"].session == ""


def test_what_a_person_chose_for_the_conversation_stands(tmp_path: Path) -> None:
    path = transcript(tmp_path, "t.jsonl", 1)
    known = {"a": Conversation(session=NEW, profile="claude", cwd="/p", token="t", transcript=str(path))}
    for flag in ("-r", "--resume", "-c", "--continue", "--session-id", "resume", "fork"):
        member = Member(name="a", agent="a", command=("claude", flag), cwd=Path("/p"))

        assert resumed(member, Path("/p"), known) == ("claude", flag)
    plain = Member(name="a", agent="a", command=("claude",), cwd=Path("/p"))
    assert resumed(plain, Path("/p"), known) == ("claude", "--resume", NEW)
    assert resumed(replace(plain, provider="openai"), Path("/p"), known) == ("claude",)


def test_a_room_that_was_never_up_gets_no_file(tmp_path: Path) -> None:
    talk = Conversation(profile="p", cwd="/p", token="t")
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


def test_a_worktree_of_a_folder_that_is_not_committed_is_its_top(tmp_path: Path, repo: Path) -> None:
    (repo / "new").mkdir()

    assert ensure_worktree(repo / "new", tmp_path / "history", "r", "ann", ENV) == (
        tmp_path / "history" / "worktrees" / "ann"
    )


def test_a_worktree_that_cannot_be_made_is_one_clear_error(tmp_path: Path, repo: Path) -> None:
    path = tmp_path / "history" / "worktrees" / "ann"
    path.mkdir(parents=True)
    (path / "file").write_text("in the way")
    with pytest.raises(Broken, match=r"cannot make a worktree at .*already exists"):
        ensure_worktree(repo, tmp_path / "history", "default", "ann", ENV)


def test_without_git_it_says_what_needs_it(tmp_path: Path, repo: Path) -> None:
    with pytest.raises(Broken, match="git was not found, which worktree = true needs"):
        ensure_worktree(repo, tmp_path / "history", "default", "ann", {"PATH": "/nowhere"})
