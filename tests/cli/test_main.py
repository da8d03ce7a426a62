"""The whole command: exit codes, one line a failure, a sane end."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from csp.cli import main, with_verb
from csp.config import ROWS


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a home and a directory of its own."""
    for name in ("XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_a_failure_is_one_line_with_exit_1(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["agents"])

    assert code == 1
    assert capsys.readouterr() == ("", "csp: no room is running; start one with: csp up\n")


def test_a_misuse_is_one_line_with_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["agnets"])

    assert code == 2
    assert capsys.readouterr() == ("", "csp: unknown verb 'agnets' (did you mean 'agents'?)\n")


def test_a_bad_setting_is_a_misuse(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CSP_PORT", "abc")
    code = main(["agents"])

    assert code == 2
    assert capsys.readouterr().err == ("csp: CSP_PORT: expected a whole number from 0 to 65535, got 'abc'\n")


def test_help_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert main(["--version"]) == 0
    assert capsys.readouterr().err == ""


def test_a_bare_csp_is_help_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.startswith("usage: csp ")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_bare_csp_opens_the_room_on_a_terminal(monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> None:
    monkeypatch.setattr("sys.stdin", _Terminal())
    monkeypatch.setattr("sys.stdout", _Terminal() if is_terminal else io.StringIO())

    assert with_verb([]) == (["up"] if is_terminal else ["--help"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["--demo", "--detach"], ["up", "--demo", "--detach"]),
        (["--room", "x"], ["up", "--room", "x"]),
        (["--room=x", "--demo"], ["up", "--room=x", "--demo"]),
        (["--verbose", "--agents", "claude"], ["up", "--verbose", "--agents", "claude"]),
        (["--room", "x", "agents"], ["--room", "x", "agents"]),
        (["--room", "agents"], ["up", "--room", "agents"]),
        (["--verbose", "send", "all", "--demo"], ["--verbose", "send", "all", "--demo"]),
        (["--help"], ["--help"]),
        (["--room", "x", "-h"], ["--room", "x", "-h"]),
        (["--version"], ["--version"]),
    ],
)
def test_options_without_a_verb_are_those_of_up(given: list[str], expected: list[str]) -> None:
    assert with_verb(given) == expected


def test_an_unexpected_error_is_one_line_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.room_registry.running_rooms", lambda path: 1 / 0)
    code = main(["agents"])

    assert code == 1
    assert capsys.readouterr().err == (
        "csp: unexpected error: ZeroDivisionError: division by zero (add --verbose for more)\n"
    )


def test_verbose_logs_the_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("csp.room_registry.running_rooms", lambda path: 1 / 0)
    main(["agents", "--verbose"])

    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_silent(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("csp.room_registry.running_rooms", interrupt)

    assert main(["agents"]) == 130
    assert capsys.readouterr() == ("", "")


def test_config_names_value_with_source(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CSP_AUTH_TOKEN", "s3cret")
    (Path.cwd() / "csp.toml").write_text("[room]\nport = 7\n")
    main(["config"])
    out = capsys.readouterr().out
    lines = {line.split()[0]: line.split()[1:] for line in out.splitlines()}

    assert list(lines) == [row.env for row in ROWS]
    assert lines["CSP_PORT"] == ["7", str(Path.cwd() / "csp.toml")]
    assert lines["CSP_AUTH_TOKEN"] == ["********", "CSP_AUTH_TOKEN"]
    assert "s3cret" not in out


def run(*argv: str, **options: object) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "csp.cli", *argv]
    return subprocess.Popen(command, stderr=subprocess.PIPE, **options)  # type: ignore[call-overload, no-any-return]  # Popen's options are passed on


def test_a_broken_pipe_is_silent() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with run("config", stdout=write_end) as process:
        _, err = process.communicate(timeout=90)
    os.close(write_end)

    assert (process.returncode, err) == (141, b"")


def test_a_full_disk_under_stdout_is_one_line() -> None:
    with open("/dev/full", "wb") as full, run("config", stdout=full) as process:
        _, err = process.communicate(timeout=90)

    assert process.returncode == 1
    assert err == b"csp: no space left on device\n"


def test_a_closed_stdout_is_no_traceback() -> None:
    script = '"$0" -m csp.cli config >&-'
    done = subprocess.run(["sh", "-c", script, sys.executable], capture_output=True, timeout=90, check=False)

    assert (done.returncode, done.stderr) == (0, b"")


def test_bytes_that_are_no_text_are_one_line() -> None:
    with run("send", b"caf\xe9", "hi") as process:  # type: ignore[arg-type]  # argv may hold any bytes
        _, err = process.communicate(timeout=90)

    assert process.returncode == 2
    assert err == b"csp: expected arguments in UTF-8, got 'caf\\udce9'\n"


def test_an_ascii_terminal_can_show_every_failure() -> None:
    environment = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    with run("agentsé", env=environment) as process:
        _, err = process.communicate(timeout=90)

    assert process.returncode == 2
    assert err.count(b"\n") == 1
    assert b"Traceback" not in err


def test_a_deleted_directory_is_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = "import os, sys; os.rmdir(os.getcwd()); from csp.cli import main; sys.exit(main(['config']))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=gone, capture_output=True, timeout=90, check=False
    )

    assert (done.returncode, done.stderr) == (
        2,
        b"csp: the current directory no longer exists (change to another one)\n",
    )


def test_output_is_not_limited_to_what_the_locale_can_write(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    (Path.cwd() / "csp.toml").write_text("[board]\nsummariser = 'hôst'\n")
    code = main(["config"])

    assert code == 0
    assert b"h\\xf4st" in raw.getvalue()
