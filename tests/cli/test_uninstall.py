"""What `csp uninstall` removes, and what it leaves alone; tests/panes/test_down_scenes.py plays it whole."""

import json
from pathlib import Path

import pytest

from csp.cli import main, uninstall
from csp.panes.down import EndReport

ENV = ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with what CSP writes into it, and with files of others beside that."""
    for name in ENV:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    history = tmp_path / ".local" / "share" / "csp" / "history"
    claim = {"room": "web", "identity": "/x", "dir": "/x", "history": str(history), "created": 1.0}
    files = {
        ".cache/csp/web.lineup": "[]",
        ".cache/csp/uv/bin/uv": "",
        ".cache/uv/wheels": "",
        ".local/state/csp/trusted/x": "",
        ".local/state/other/x": "",
        ".local/share/csp/rooms/web.json": json.dumps(claim | {"is_named": False}),
        ".local/share/csp/tls/10.0.0.1.key": "",
        ".local/share/csp/history/web/journal.jsonl": "",
        ".config/csp/config.toml": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def left(home: Path) -> set[str]:
    return {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}


def test_only_histories_and_what_is_not_ours_stay(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["uninstall", "--yes"]) == 0

    assert left(home) == {
        ".cache/uv/wheels",
        ".local/state/other/x",
        ".local/share/csp/history/web/journal.jsonl",
        ".config/csp/config.toml",
    }
    assert not (home / ".local" / "state" / "csp").exists()
    said = capsys.readouterr().err
    assert f"kept the history in {home}/.local/share/csp/history/web\n" in said
    assert "remove the package with: " in said


def test_without_a_yes_nothing_is_removed(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = left(home)

    assert main(["uninstall"]) == 2
    assert left(home) == before
    assert "--yes" in capsys.readouterr().err


def test_an_agent_cannot_do_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CSP_AGENT", "ada")
    before = left(home)

    assert main(["uninstall", "--yes"]) == 1
    assert left(home) == before


def test_a_script_reads_what_was_done(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["uninstall", "--yes", "--json"]) == 0

    done = json.loads(capsys.readouterr().out)
    assert done["ended"] == []
    assert str(home / ".cache" / "csp") in done["removed"]
    assert done["histories"] == [str(home / ".local" / "share" / "csp" / "history" / "web")]


def test_a_sidecar_in_another_terminal_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = "guest runs in its own terminal and is not ended"
    monkeypatch.setattr("csp.panes.down.end_room", lambda *_: EndReport(left=[kept]))

    assert main(["uninstall", "--yes"]) == 0
    assert f"{kept}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/a/.local/share/uv/tools/csp-groupchat", "uv tool uninstall csp-groupchat"),
        ("/home/a/.local/share/pipx/venvs/csp-groupchat", "pipx uninstall csp-groupchat"),
        (
            "/home/a/.cache/uv/archive-v0/x1y2",
            "uv cache clean csp-groupchat && uv cache prune (uvx keeps it only in uv's cache)",
        ),
    ],
)
def test_the_package_is_removed_by_what_installed_it(prefix: str, command: str) -> None:
    assert uninstall.how_to_remove_package(prefix) == command


def test_a_clone_is_removed_as_a_folder() -> None:
    root = Path(uninstall.__file__).resolve().parents[2]

    assert uninstall.how_to_remove_package("/usr") == f"rm -rf {root}"


def test_histories_inside_a_clone_are_pointed_out(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "uv.lock").write_text("")
    monkeypatch.setattr(uninstall, "_CLONE", home)
    monkeypatch.setattr("sys.prefix", str(home / ".venv"))

    assert main(["uninstall", "--yes"]) == 0
    *_, advice, command = capsys.readouterr().err.splitlines()
    assert advice == f"move the histories out of {home} first if you want to keep them"
    assert command == f"remove the package with: rm -rf {home}"
