"""Where tests need a package that has no wheel for the system, pyproject.toml says so, and only there."""

import sys
from importlib.util import find_spec

import pytest

from tests.suite.optional_packages import has_word_vectors


@pytest.mark.parametrize(
    ("python", "platform", "machine", "expected"),
    [
        ("3.11", "linux", "x86_64", True),
        ("3.13", "darwin", "arm64", True),
        ("3.13", "linux", "aarch64", False),
        ("3.14", "linux", "x86_64", False),
        ("3.14", "darwin", "arm64", False),
    ],
)
def test_word_vectors_are_where_they_have_wheels(
    python: str, platform: str, machine: str, expected: bool
) -> None:
    here = {"python_version": python, "sys_platform": platform, "platform_machine": machine}

    assert has_word_vectors(here) is expected


def test_what_is_asked_for_here_is_installed() -> None:
    assert has_word_vectors() is (find_spec("wordllama") is not None), sys.version
