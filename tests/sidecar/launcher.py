"""Start a child, then become its relay: what `csp sidecar` does, without a room.

Run as a program, with a JSON object as its argument.
"""

import json
import os
import sys
import termios

from csp.sidecar.relay.job_control import open_life
from csp.sidecar.relay.pty_processes import SpawnPlan, exec_relay, start_child
from csp.sidecar.relay.user_terminal import repair


def launch(wanted: dict[str, object]) -> None:
    argv, cwd = wanted["argv"], str(wanted["cwd"])
    brain_argv = wanted["brain"]
    assert isinstance(argv, list) and isinstance(brain_argv, list)
    # What a careless parent leaves open must reach neither the child nor a brain.
    stray = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(stray, True)
    os.dup2(stray, 200)
    if os.isatty(0):
        # The terminal becomes ours, as it would be a shell's.
        if os.getsid(0) == os.getpid():
            os.close(os.open(os.ttyname(0), os.O_RDWR))
        repair(0, str(wanted["state"]))
        rows, cols = termios.tcgetwinsize(0)
    else:
        rows, cols = 24, 80
    life, end_of_life = open_life()
    child, master = start_child(argv, dict(os.environ), cwd, rows, cols, like=0, life=life)
    plan = SpawnPlan(
        child=child,
        master=master,
        argv=argv,
        env=dict(os.environ),
        cwd=cwd,
        brain_argv=brain_argv,
        state=str(wanted["state"]),
        log=str(wanted["log"]),
        life=end_of_life,
    )
    exec_relay(plan, dict(os.environ), "test")


if __name__ == "__main__":
    launch(json.loads(sys.argv[1]))
