"""Run the relay: the script that a sidecar becomes, in an interpreter without site-packages."""

import os
import sys

if __name__ == "__main__":
    sys.path.append(os.path.abspath(f"{__file__}/../../../.."))
    from csp.sidecar.relay.pty_processes import read_plan
    from csp.sidecar.relay.relay_loop import relay

    os._exit(relay(read_plan()))
