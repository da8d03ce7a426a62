"""The tool of chaos works, and notices what it is there to notice."""

import json
import random
from pathlib import Path

import pytest

from tests.chaos import __main__ as program
from tests.chaos import clocks, disks, files, floods, kills, readers, soak, texts
from tests.chaos.cases import Outcome
from tests.chaos.damage import KINDS


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a case be a small one."""
    monkeypatch.setattr(kills, "LIVES", 2)
    monkeypatch.setattr(disks, "_LIVES", 1)
    monkeypatch.setattr(clocks, "_LIVES", 1)
    monkeypatch.setattr(readers, "TIMES", 5)
    monkeypatch.setattr(files, "IS_RICH", False)


@pytest.mark.usefixtures("short")
def test_a_few_cases_of_each_part_break_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--seed", "5", "--minutes", "9", "--cases", "6", "--json"]
    code = program.main([*words, "--only", "kills,files,readers,disks,clocks"])
    said = capsys.readouterr()
    figures = json.loads(said.out)

    assert (code, figures["broken"]) == (0, 0), said.err
    assert figures["kills"] > 0 and figures["damaged"] > 2 and figures["acknowledged"] > 0


def test_an_idle_and_a_flooded_room_are_measured(tmp_path: Path) -> None:
    outcome = floods.play(tmp_path, "1", agents=4, presses=3)

    assert outcome.wrong == []
    assert [len(times) for times in outcome.times.values()] == [3, 3]
    assert outcome.counts["flood_messages"] > 0


def test_growth_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "_MESSAGES", 5)
    outcome = soak.play(tmp_path, "1", soak_s=0.1)

    assert outcome.wrong == []
    assert outcome.counts["soak_messages"] >= 20
    assert outcome.notes["memory after the soak, MB"] > 10


def test_the_silence_of_a_room_is_measured(tmp_path: Path) -> None:
    outcome = Outcome()
    carriers = [one for one in texts.CARRIERS if one.name in ("note", "tag")]
    found = texts.measure(tmp_path / "room", [("many 'x'", "x" * 250_000)], carriers, outcome)

    assert outcome.wrong == []
    assert [one.what for one in found] == ["idle", "note: many 'x'", "tag: many 'x'", "after a restart"]
    assert all(one.health_s > 0 for one in found)


def test_a_disk_that_lies_about_its_syncs_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kills, "LIVES", 2)
    plays = (kills.play(tmp_path / str(number), f"{number}", lies=True) for number in range(9))

    assert any("lost:" in problem for outcome in plays for problem in outcome.wrong)


def test_a_broken_invariant_is_told_with_the_command_that_shows_it_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = readers.Reader("x.json", "{}", lambda folder: json.loads((folder / "x.json").read_bytes()))
    monkeypatch.setattr(readers, "READERS", {"a file": broken})

    assert program.main(["--seed", "4", "--case", "readers:2"]) == 1
    said = capsys.readouterr()
    assert "run it again with: python -m tests.chaos --seed 4 --case readers:2" in said.err
    assert "broken" in said.out


@pytest.mark.parametrize("words", [["--only", "kils"], ["--case", "kills"], ["--case", "x:1"]])
def test_a_misspelt_option_is_explained(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        program.main(words)

    assert caught.value.code == 2
    assert "expected" in capsys.readouterr().err


@pytest.mark.parametrize("name", readers.READERS)
def test_whatever_stands_in_a_file_its_reader_returns(tmp_path: Path, name: str) -> None:
    reader = readers.READERS[name]
    kinds = [kind for kind in KINDS if kind != "a pipe"]
    found = {kind: readers.damaged_and_read(tmp_path / "x", reader, kind, random.Random(1)) for kind in kinds}

    assert {kind: problem for kind, problem in found.items() if problem} == {}


def test_a_sound_file_is_read(tmp_path: Path) -> None:
    for name, reader in readers.READERS.items():
        folder = tmp_path / name
        path = folder / reader.path
        path.parent.mkdir(parents=True, mode=0o700)
        path.write_text(reader.content)
        reader.read(folder)
