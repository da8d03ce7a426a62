"""Starts the scripted TUI: `python -m tests.tui`, or this file with -I -S from anywhere."""

import sys
from pathlib import Path


def main() -> int:
    # With -I neither the script's folder nor PYTHONPATH is searched.
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tests.tui.knobs import parse
    from tests.tui.program import Program

    return Program(parse(sys.argv[1:])).run()


if __name__ == "__main__":
    sys.exit(main())
