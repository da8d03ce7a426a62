"""The bench of the modes plays real sessions, whose prompts stay short."""

import pytest

from csp.bench import modes


def test_every_figure_is_there_and_prompts_do_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modes, "CROWDS", (2, 5))
    steps: list[str] = []
    figures = {
        figure.name: figure.middle
        for figure in modes.measure(modes.Effort(debate=2, rounds=1), steps.append).all()
    }

    assert {name.partition(",")[0] for name in figures} >= {"engine", "gateway"}
    assert figures["engine, debate of 5"] > 0 and figures["gateway, fsync, debate of 5"] > 0
    early, late = figures["prompt of turns 11 to 20"], figures["prompt of the last 20 turns of 200"]
    assert late < early * 1.05
    assert len(steps) == 3
