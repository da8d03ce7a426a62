"""Run the benchmarks on this machine."""

import sys
from importlib import import_module
from pathlib import Path

from csp.cli.arguments import JSON, SECONDS, switch, takes, value
from csp.cli.verb_call import VerbCall
from csp.errors import BadInput, NotFound

CLONE = Path(__file__).resolve().parents[2]


@takes(
    value("subject", "WHAT", "gateway, sidecar or modes", choices=("gateway", "sidecar", "modes")),
    value("--seconds", "S", "length of each load on the gateway in seconds; default: 1", type=SECONDS),
    switch("--quick", "shorter loads, fewer rounds, and a journal of 100,000 lines instead of a million"),
    JSON,
    examples=("csp bench gateway --quick",),
)
def bench(call: VerbCall) -> int:
    """Print figures measured on separate processes; only a clone contains the benchmarks."""
    if call.args.seconds is not None and call.args.subject != "gateway":
        raise BadInput("--seconds: expected only for the gateway", "use --quick for a shorter run")
    if not (CLONE / "tests" / "bench" / "machine").is_dir():
        raise NotFound(
            "csp bench needs a clone of the CSP repository: the package does not contain the benchmarks",
            f"run in a clone: uv run csp bench {call.args.subject}",
        )
    # Before any other installed package with this name.
    sys.path.insert(0, str(CLONE))
    return int(import_module("tests.bench.machine.command").run(call))
