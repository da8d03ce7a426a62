"""Start a relay for a bench, as lightly as `csp sidecar` could."""

import os
import termios


def become_relay(folder: str, argv: list[str], brain_argv: list[str]) -> None:
    """Do what `csp sidecar` does once it knows what to run; for a process of its own."""
    from csp.sidecar.relay.pty_processes import SpawnPlan, exec_relay, start_child

    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    env = {"PATH": os.defpath, "TERM": "xterm-256color", "PYTHONPATH": root}
    rows, cols = termios.tcgetwinsize(0)
    child, master = start_child(argv, env, folder, rows, cols, like=0)
    plan = SpawnPlan(
        child=child,
        master=master,
        argv=argv,
        env=env,
        cwd=folder,
        brain_argv=brain_argv,
        state=f"{folder}/state",
    )
    exec_relay(plan, env, "bench")


def keep_screen() -> None:
    """Be a brain that does nothing but feed its emulator."""
    from csp.sidecar.emulator import Emulator, make_emulator
    from csp.sidecar.relay.pty_processes import HANDED_FD
    from csp.sidecar.relay.relay_frames import GAP, OUTPUT, SIZE, Decoder

    decoder = Decoder()
    emulator: Emulator = make_emulator(24, 80)
    while data := os.read(HANDED_FD, 1 << 18):
        for kind, payload in decoder.feed(data):
            if kind == OUTPUT:
                emulator.feed(payload)
            elif kind == SIZE:
                emulator.resize(int.from_bytes(payload[:2], "big"), int.from_bytes(payload[2:], "big"))
            elif kind == GAP:
                emulator.feed(b"\x1bc")
