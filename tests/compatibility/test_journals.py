"""Journals of earlier versions replay to what those versions showed."""

from pathlib import Path

import pytest

from tests.compatibility.views import JOURNALS, VIEWS, as_text, views_of

NAMES = sorted(path.stem for path in JOURNALS.glob("*.jsonl"))


def test_there_are_journals_of_every_kind() -> None:
    assert len(NAMES) > 40


@pytest.mark.parametrize("name", NAMES)
async def test_a_journal_replays_to_the_same_views(name: str, tmp_path: Path) -> None:
    found = as_text(await views_of(JOURNALS / f"{name}.jsonl", tmp_path / "room"))

    assert found == (VIEWS / f"{name}.json").read_text("utf-8")
