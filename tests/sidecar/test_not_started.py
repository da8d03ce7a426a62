"""A command that is found but cannot be executed leaves no agent behind."""

import subprocess
import sys
from pathlib import Path

import pytest

from csp.sidecar.run_record import agents_dir
from tests.sidecar.stage import Stage

pytestmark = pytest.mark.timeout(180)


def sidecar(
    stage: Stage, name: str, program: Path, text: str, *options: str
) -> subprocess.CompletedProcess[str]:
    """Run a sidecar around a program with this text."""
    program.write_text(text)
    program.chmod(0o755)
    command = [sys.executable, "-m", "csp.cli", "sidecar", "--name", name, *options, "--", str(program)]
    return subprocess.run(
        command,
        env=stage.room.env,
        cwd=stage.room.dir,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("#!/no/such/interpreter\n", (), "no such file or directory"),
        ("no program at all\n", (), "exec format error"),
        ("#!/no/such/interpreter\n", ("--profile", "gemini"), "no such file or directory"),
    ],
)
def test_a_command_that_cannot_be_executed_is_gone_at_once(
    shared_stage: Stage, text: str, options: tuple[str, ...], reason: str
) -> None:
    stage, name = shared_stage, f"agent-{len(shared_stage.room.gateway.get('/agents'))}"
    program = stage.folder / "broken"
    done = sidecar(stage, name, program, text, *options)
    folder = agents_dir(Path(stage.room.env["XDG_RUNTIME_DIR"]) / "csp", stage.room.name) / name

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"csp: cannot start {str(program)!r}: {reason}\n"
    assert (stage.agent(name)["state"], stage.agent(name)["online"]) == ("offline", False)
    assert not (folder / "gemini-home").exists()


def test_what_waits_for_an_agent_survives_a_start_that_failed(shared_stage: Stage) -> None:
    stage = shared_stage
    program = stage.folder / "program"
    sidecar(stage, "agent", program, "#!/bin/sh\nexit 0\n")
    message = stage.send("agent", "hello")
    sidecar(stage, "agent", program, "#!/no/such/interpreter\n")

    assert stage.wait_for(message, "agent", "queued", "held") in ("offline", None)

    program.write_text("#!/bin/sh\nprintf '> '\nexec cat\n")
    stage.seat("agent", [str(program)])
    stage.wait_for(message, "agent", "submitted", "confirmed", timeout_s=90)
