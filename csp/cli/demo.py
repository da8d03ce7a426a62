"""Run a scripted demo agent."""

from csp.cli.arguments import takes, value
from csp.cli.verb_call import VerbCall
from csp.config import process_environment


@takes(value("persona", "PERSONA", "ada, bob, cy or conductor"), examples=("csp demo ada",))
def demo(call: VerbCall) -> int:
    """Run one of the demo agents in this terminal until the user quits."""
    from csp.agents.demo.demo_program import Program

    return Program(call.args.persona, process_environment()).run()
