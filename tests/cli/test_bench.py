"""csp bench: its options and its output, without measuring anything."""

import json
from pathlib import Path
from typing import Any

import pytest

from csp.cli import bench
from csp.errors import BadInput, NotFound
from tests.bench.machine import gateway, modes, sidecar
from tests.bench.machine.figures import Figure, Figures
from tests.cli.recording import call_of


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Measure nothing; return how much would have been measured."""
    efforts: list[Any] = []

    def measure(effort: Any, on_step: object) -> Figures:
        efforts.append(effort)
        figures = Figures()
        figures.add("POST", "req/s", 5.0)
        return figures

    monkeypatch.setattr("tests.bench.machine.gateway.measure", measure)
    monkeypatch.setattr("tests.bench.machine.modes.measure", measure)
    monkeypatch.setattr("tests.bench.machine.sidecar.measure", lambda *words: (measure(*words), ["no tmux"]))
    return efforts


@pytest.mark.parametrize("module", [gateway, sidecar, modes])
def test_quick_is_less_than_all(measured: list[Any], module: Any) -> None:
    subject = module.__name__.rpartition(".")[2]
    assert bench.bench(call_of("bench", subject)) == bench.bench(call_of("bench", subject, "--quick")) == 0

    assert measured == [module.FULL, module.QUICK]


def test_seconds_are_for_the_gateway_alone(measured: list[Any]) -> None:
    bench.bench(call_of("bench", "gateway", "--seconds", "2.5"))
    assert (measured[0].seconds, measured[0].lines) == (2.5, gateway.FULL.lines)
    with pytest.raises(BadInput, match="--seconds: expected only for the gateway"):
        bench.bench(call_of("bench", "modes", "--seconds", "2.5"))


def test_figures_are_printed_and_what_was_left_out_is_said(
    measured: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    bench.bench(call_of("bench", "sidecar", "--quick"))
    shown = capsys.readouterr()
    bench.bench(call_of("bench", "sidecar", "--quick", "--json"))
    found = json.loads(capsys.readouterr().out)
    bench.bench(call_of("bench", "modes", "--json"))

    assert shown.out.splitlines()[1].startswith("POST    5.00  req/s")
    assert shown.err.startswith("left out: no tmux\nload average ")
    assert shown.err.endswith(f"; the spread is over {sidecar.QUICK.rounds} rounds\n")
    assert (found["missing"], found["figures"][0]) == (
        ["no tmux"],
        Figure("POST", "req/s", [5.0]).as_json(),
    )
    assert "missing" not in json.loads(capsys.readouterr().out)


def test_an_installed_package_says_that_the_bench_needs_a_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "CLONE", tmp_path)

    with pytest.raises(NotFound, match="needs a clone") as refused:
        bench.bench(call_of("bench", "modes"))
    assert refused.value.hint == "run in a clone: uv run csp bench modes"
