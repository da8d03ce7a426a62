"""Measure this machine."""

from csp.cli.call import Call
from csp.cli.terminal import Progress, put, put_json, talk


def bench(call: Call) -> int:
    """Print the figures of a gateway that is started for this alone."""
    from dataclasses import replace

    from csp.bench.figures import table
    from csp.bench.gateway import FULL, QUICK, measure

    effort = QUICK if call.args.quick else FULL
    if call.args.seconds is not None:
        effort = replace(effort, seconds=call.args.seconds)
    progress = Progress()
    try:
        figures = measure(effort, progress.show)
    finally:
        progress.clear()
    if call.is_json:
        put_json({"load": figures.load(), "figures": [figure.as_json() for figure in figures.all()]})
        return 0
    for line in table(figures.all()):
        put(line)
    talk(f"{figures.load()}; the spread is over {effort.rounds} rounds")
    return 0
