"""What `csp bench` does in a clone."""

from dataclasses import replace

from csp.cli.output import Progress, put, put_json, talk
from csp.cli.verb_call import VerbCall
from tests.bench.machine import gateway, modes, sidecar
from tests.bench.machine.figures import Figures, table


def run(call: VerbCall) -> int:
    """Measure the subject that was asked for and print its figures."""
    progress = Progress()
    try:
        figures, rounds, missing = _measure(call, progress)
    finally:
        progress.clear()
    if call.is_json:
        found = [figure.as_json() for figure in figures.all()]
        put_json({"load": figures.load(), "figures": found} | ({"missing": missing} if missing else {}))
        return 0
    for line in table(figures.all()):
        put(line)
    for problem in missing:
        talk(f"left out: {problem}")
    talk(f"{figures.load()}; the spread is over {rounds} rounds")
    return 0


def _measure(call: VerbCall, progress: Progress) -> tuple[Figures, int, list[str]]:
    """Return the figures, the number of rounds and what could not be measured."""
    is_quick = call.args.quick
    if call.args.subject == "sidecar":
        sidecar_effort = sidecar.QUICK if is_quick else sidecar.FULL
        figures, missing = sidecar.measure(sidecar_effort, progress.show)
        return figures, sidecar_effort.rounds, missing
    if call.args.subject == "modes":
        modes_effort = modes.QUICK if is_quick else modes.FULL
        return modes.measure(modes_effort, progress.show), modes_effort.rounds, []
    effort = gateway.QUICK if is_quick else gateway.FULL
    if call.args.seconds is not None:
        effort = replace(effort, seconds=call.args.seconds)
    return gateway.measure(effort, progress.show), effort.rounds, []
