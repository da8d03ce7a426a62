"""A brain without a mind of its own: passes frames between the relay and a test.

Run as a program, with the path of the test's socket as its argument; says its pid first.
"""

import os
import select
import socket
import sys


def main(path: str) -> None:
    relay = socket.socket(fileno=3)
    test = socket.socket(socket.AF_UNIX)
    test.connect(path)
    test.sendall(os.getpid().to_bytes(4, "big"))
    while True:
        readable, _, _ = select.select([relay, test], [], [])
        for source, sink in ((relay, test), (test, relay)):
            if source in readable:
                data = source.recv(65536)
                if not data:
                    return
                sink.sendall(data)


if __name__ == "__main__":
    main(sys.argv[1])
