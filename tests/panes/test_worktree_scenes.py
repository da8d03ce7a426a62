"""csp up --worktrees: agents in git worktrees of their own, from start to purge."""

import subprocess
from pathlib import Path

from tests.panes.place import Place


def git(place: Place, *words: str) -> str:
    settings = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    done = subprocess.run(
        ["git", *settings, *words], cwd=place.dir, env=place.env, capture_output=True, text=True, check=True
    )
    return done.stdout


def directory(place: Place, agent: str) -> Path:
    pane = str(place.pane(agent)["id"])
    return Path(place.tmux("display-message", "-p", "-t", pane, "#{pane_current_path}").rstrip("\n"))


def test_agents_keep_their_worktrees_until_they_are_purged(place: Place) -> None:
    place.set(CSP_DEMO_SPEED="0")
    words = ("--demo", "--agents", "ada,bob")
    refused = place.csp("up", "--detach", "--worktrees", *words)
    assert refused.code == 2
    assert f"agent 'ada': a worktree needs a git repository, but '{place.dir}' is not in one" in refused.err
    git(place, "init", "-q")
    git(place, "commit", "-q", "--allow-empty", "-m", "start")
    place.up("--worktrees", *words)
    trees = place.history / "default" / "worktrees"

    assert [directory(place, agent) for agent in ("ada", "bob")] == [trees / "ada", trees / "bob"]
    assert "csp/default/ada" in git(place, "branch", "--list", "--all")
    (row,) = place.csp("rooms", "--json").json
    assert [agent["dir"] for agent in row["agents"]] == [str(trees / "ada"), str(trees / "bob")]
    assert f"ada works in {trees / 'ada'}" in place.csp("status").out

    (trees / "ada" / "work").write_text("not committed")
    assert place.csp("down").code == 0
    again = place.up(*words)
    assert f"in a git worktree as before: ada, bob (to work in {place.dir}" in again.err
    assert directory(place, "ada") == trees / "ada"
    assert (trees / "ada" / "work").read_text() == "not committed"

    assert place.csp("down").code == 0
    place.up("--no-worktrees", *words)
    assert directory(place, "ada") == place.dir
    ended = place.csp("down", "--purge", "--yes")
    assert ended.code == 0, ended.err
    assert f"work in {trees / 'ada'} is not committed, so it was kept" in ended.err
    assert (trees / "ada" / "work").exists()
    assert not (trees / "bob").exists()
