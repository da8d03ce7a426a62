"""A program that asks by a menu without numbers, to be moved in by the arrow keys; run as a script.

It takes lines at a `> `; the line `menu` opens the menu. What is taken or chosen goes to a file.
"""

import os
import sys
import tty
from pathlib import Path
from typing import Final

CHOICES: Final = ("Yes", "No")


def main(log: Path) -> None:
    tty.setraw(0)
    while True:
        os.write(1, b"> ")
        line = read_line()
        note(log, f"line {line}")
        if line == "menu":
            note(log, f"chose {choose()}")
        else:
            os.write(1, f"you said: {line}\r\n".encode())


def read_line() -> str:
    line = b""
    while not line.endswith(b"\r"):
        key = os.read(0, 1)
        line += key
        os.write(1, key if key != b"\r" else b"\r\n")
    return line[:-1].decode()


def choose() -> str:
    chosen = 0
    os.write(1, b"\x1b[?25lOverwrite the file?\r\n")
    while True:
        rows = [f"{'>' if at == chosen else ' '} {text}\r\n" for at, text in enumerate(CHOICES)]
        os.write(1, "".join(rows).encode())
        key = os.read(0, 16)
        if key == b"\r":
            os.write(1, b"\x1b[?25h")
            return CHOICES[chosen]
        chosen = {b"\x1b[A": 0, b"\x1b[B": 1}.get(key, chosen)
        os.write(1, b"\x1b[2A")


def note(log: Path, text: str) -> None:
    with log.open("a") as file:
        file.write(text + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
