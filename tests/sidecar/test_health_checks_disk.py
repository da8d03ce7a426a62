"""Whether the disk under a sidecar can still be written to."""

import os
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from csp.sidecar.brain import health_checks


@pytest.mark.parametrize(
    ("blocks", "files", "free_files", "is_full"),
    [(4, 100, 50, False), (3, 100, 50, True), (4, 100, 0, True), (4, 0, 0, False)],
)
def test_a_disk_is_full_without_blocks_or_files(
    blocks: int, files: int, free_files: int, is_full: bool
) -> None:
    found = SimpleNamespace(f_bavail=blocks, f_frsize=4096, f_files=files, f_favail=free_files)
    with mock.patch.object(os, "statvfs", return_value=found):
        assert health_checks.is_full(Path("/")) is is_full


def test_a_folder_that_is_gone_is_not_full() -> None:
    assert not health_checks.is_full(Path("/none/such"))
