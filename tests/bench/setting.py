"""What every case needs: a place on the disk, the number of rounds, a long journal."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.machine.journals import make_journal
from tests.bench.machine.process import Server, start_gateway

LONG: Final = 1_000_000
SHORT: Final = 10


@dataclass(frozen=True, slots=True)
class Setting:
    """One run of the bench; `kept` is where a long journal is left for the next run."""

    folder: Path
    rounds: int
    seconds: float
    on_step: Callable[[str], None]
    kept: Path | None = None

    def fresh(self) -> Path:
        """Return a new folder."""
        return Path(tempfile.mkdtemp(dir=self.folder))

    @contextmanager
    def gateway(self, durability: str = "fsync") -> Iterator[Server]:
        """Run a gateway on a journal of its own, which is gone afterwards."""
        path = self.fresh()
        with start_gateway(path, durability) as server:
            server.settle()
            yield server
        shutil.rmtree(path)

    def journal(self, lines: int) -> Path:
        """Return the folder of a journal with this many lines, made by the first who asks."""
        path = (self.kept or self.folder) / f"journal-{lines}"
        if not (path / "whole").exists():
            self.on_step(f"writing a journal of {lines:,} lines, which may take a minute")
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir(parents=True)
            make_journal(path, lines)
            (path / "whole").touch()
        return path
