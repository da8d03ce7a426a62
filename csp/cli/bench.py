"""Measure this machine."""

from typing import TYPE_CHECKING

from csp.cli.output import Progress, put, put_json, talk
from csp.cli.verb_call import VerbCall
from csp.errors import BadInput

if TYPE_CHECKING:
    from tests.bench.machine.figures import Figures


def bench(call: VerbCall) -> int:
    """Print the figures of what is started for this alone."""
    if call.args.seconds is not None and call.args.subject != "gateway":
        raise BadInput("--seconds: expected only for the gateway", "use --quick for a shorter run")
    measure = {"gateway": _measure_gateway, "sidecar": _measure_sidecar, "modes": _measure_modes}[
        call.args.subject
    ]
    progress = Progress()
    try:
        figures, rounds, missing = measure(call, progress)
    finally:
        progress.clear()
    _show(call, figures, rounds, missing)
    return 0


def _measure_gateway(call: VerbCall, progress: Progress) -> "tuple[Figures, int, list[str]]":
    from dataclasses import replace

    from tests.bench.machine.gateway import FULL, QUICK, measure

    effort = QUICK if call.args.quick else FULL
    if call.args.seconds is not None:
        effort = replace(effort, seconds=call.args.seconds)
    return measure(effort, progress.show), effort.rounds, []


def _measure_sidecar(call: VerbCall, progress: Progress) -> "tuple[Figures, int, list[str]]":
    from tests.bench.machine.sidecar import FULL, QUICK, measure

    effort = QUICK if call.args.quick else FULL
    figures, missing = measure(effort, progress.show)
    return figures, effort.rounds, missing


def _measure_modes(call: VerbCall, progress: Progress) -> "tuple[Figures, int, list[str]]":
    from tests.bench.machine.modes import FULL, QUICK, measure

    effort = QUICK if call.args.quick else FULL
    return measure(effort, progress.show), effort.rounds, []


def _show(call: VerbCall, figures: "Figures", rounds: int, missing: list[str]) -> None:
    from tests.bench.machine.figures import table

    if call.is_json:
        found = [figure.as_json() for figure in figures.all()]
        put_json({"load": figures.load(), "figures": found} | ({"missing": missing} if missing else {}))
        return
    for line in table(figures.all()):
        put(line)
    for problem in missing:
        talk(f"left out: {problem}")
    talk(f"{figures.load()}; the spread is over {rounds} rounds")
