"""The bench of the modes plays real sessions, whose prompts stay short."""

from pathlib import Path

import pytest

from tests.bench import modes as bench
from tests.bench.cases import CASES
from tests.bench.machine import modes
from tests.bench.setting import Setting


def test_every_figure_is_there_and_prompts_do_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "CROWDS", (2, 5))
    steps: list[str] = []
    figures = {
        figure.name: figure.middle
        for figure in modes.measure(modes.Effort(debate=2, rounds=1, relay=10), steps.append).all()
    }

    assert {name.partition(",")[0] for name in figures} >= {"engine", "gateway"}
    assert figures["engine, debate of 5"] > 0 and figures["gateway, fsync, debate of 5"] > 0
    early, late = figures["prompt of turns 11 to 20"], figures["prompt of the last 20 turns of 200"]
    assert late < early * 1.05
    assert figures[modes.RELAY] > 0
    assert figures["commits to disk from a reply to the next ask"] == 1
    assert len(steps) == 3


def test_limits_of_a_turn_have_a_row_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "TURNS", 10)
    case = next(case for case in CASES if case.name == "modes")
    overhead, commits = case.results(Setting(tmp_path, 2, 1.0, lambda _: None))

    assert (overhead.limit.must, overhead.limit.aim, overhead.limit.unit) == (0.010, 0.003, "s")
    assert (len(overhead.ratios), commits.figure, commits.verdict) == (2, 1, "aim met")
