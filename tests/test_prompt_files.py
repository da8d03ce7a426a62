"""The files of prompts/."""

from pathlib import Path

import pytest

from csp import prompt_files
from csp.errors import Broken
from csp.prompt_files import load_prompts, read_prompt


def test_every_prompt_is_loaded_by_its_name() -> None:
    prompts = load_prompts()

    assert {"rules", "orchestrator", "tools"} <= set(prompts)
    assert prompts["rules"] == read_prompt("rules.md")


def test_a_missing_prompt_is_named() -> None:
    with pytest.raises(Broken, match=r"prompts/nothing\.md is missing"):
        read_prompt("nothing.md")


def test_a_missing_folder_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(prompt_files, "_FOLDERS", (str(tmp_path / "none"),))

    with pytest.raises(Broken, match=f"the prompts are missing, expected them in one of: {tmp_path}/none"):
        load_prompts()


def test_only_markdown_files_are_prompts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("bee")
    (tmp_path / "a.md").write_text("ay")
    (tmp_path / "notes.txt").write_text("no prompt")
    monkeypatch.setattr(prompt_files, "_FOLDERS", (str(tmp_path),))

    assert load_prompts() == {"a": "ay", "b": "bee"}
