"""A full disk under a sidecar costs neither the CLI nor a message."""

import subprocess
import sys
from pathlib import Path

import pytest

from csp.sidecar.brain.health_checks import is_full
from tests.namespaces import with_own_mounts

pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("name", ["claude", "codex", "gemini"])
@pytest.mark.full
def test_messages_go_on_while_the_disk_is_full(name: str, tmp_path: Path) -> None:
    """The scene has a disk of its own, in a namespace of its own."""
    command = [*with_own_mounts(), sys.executable, "-m", "tests.sidecar.full_disk", name, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_a_disk_is_full_when_nothing_can_be_written(tmp_path: Path) -> None:
    assert not is_full(tmp_path)
    assert not is_full(tmp_path / "gone")
    # A file system that gives no space to anybody.
    assert is_full(Path("/proc"))
