"""Whether the SDK is here, without loading it; how to get it."""

import sys
from pathlib import Path

import pytest

from csp.mcp import sdk_check
from csp.mcp.sdk_check import how_to_install, is_installed
from csp.mcp.tool_texts import sections


def test_the_sdk_is_known_by_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_installed()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    # A folder of a user may be called mcp, too.
    (tmp_path / "mcp").mkdir()
    assert not is_installed()
    (tmp_path / "mcp" / "server" / "lowlevel").mkdir(parents=True)
    assert is_installed()


def test_a_clone_is_told_another_command_than_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(sdk_check.__file__).resolve().parents[2]
    assert how_to_install() == f"uv sync --inexact --extra mcp --project {root}"
    monkeypatch.setattr(sdk_check, "__file__", str(tmp_path / "csp" / "mcp" / "sdk_check.py"))
    assert how_to_install() == "pip install 'csp-groupchat[mcp]'"


def test_a_text_is_cut_at_its_headings() -> None:
    found = sections("tools.md")

    assert found[""] and not found[""].startswith("#")
    assert all(text == text.strip() and "\n## " not in text for text in found.values())
    assert "broadcast" in found
