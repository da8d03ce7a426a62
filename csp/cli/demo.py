"""Be a scripted demo agent."""

from csp.cli.call import Call
from csp.config import process_environment


def demo(call: Call) -> int:
    """Talk in this terminal as one of the demo agents, until the person leaves."""
    from csp.agents.demo.program import Program

    return Program(call.args.persona, process_environment()).run()
