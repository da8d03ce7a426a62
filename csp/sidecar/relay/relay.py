"""Run the relay: the script that a sidecar becomes, in an interpreter without site-packages."""

import os
import sys

if __name__ == "__main__":
    sys.path.append(os.path.abspath(f"{__file__}/../../../.."))
    from csp.sidecar.relay.relay_loop import run

    os._exit(run())
