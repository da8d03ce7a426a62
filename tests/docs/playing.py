"""Execute the commands of a page as somebody would type them, in a home and a project of their own."""

import re
import subprocess
import sys
from typing import Final

from tests.docs.pages import ROOT, blocks, has_room
from tests.panes.place import Place
from tests.review.repository import git

#: The commands of one page together, on a busy machine.
TIMEOUT_S: Final = 280.0
_MARK: Final = "--- next command ---"
_BEGIN: Final = f"""set -u
next() {{ echo "{_MARK}"; echo "{_MARK} $1" >&2; }}
"""
#: A program that reads lines and answers, which the pages start as an agent.
_AGENT: Final = """#!/bin/sh
printf '> '
while read -r line; do printf 'I have read %s words.\\n\\n> ' "$(echo "$line" | wc -w)"; done
"""


def play(page: str, place: Place) -> str:
    """Run the commands of a page; return what went wrong, with the place of each, or nothing."""
    prepare(place)
    if has_room(page):
        place.up("--demo")
    typed = [
        (block.place, command, shown)
        for block in blocks(page)
        if not block.reason
        for command, shown in block.commands()
    ]
    script = _BEGIN + "\n".join(
        f"next '{where}'\n{local(command, place)} || echo {where}: exit $? >> failed"
        for where, command, _ in typed
    )
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=place.dir,
        env=place.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    place.watch()
    outputs = done.stdout.split(f"{_MARK}\n")[1:]
    failed = place.dir / "failed"
    problems = failed.read_text().splitlines() if failed.exists() else []
    if len(outputs) < len(typed):
        problems.append(f"stopped after {len(outputs)} of {len(typed)} commands, exit {done.returncode}")
    for (where, command, shown), output in zip(typed, outputs, strict=False):
        problems += [
            f"{where}: {command!r} does not print {line!r} but {output!r}" for line in missing(shown, output)
        ]
    return "\n".join([*problems, done.stderr]) if problems else ""


def prepare(place: Place) -> None:
    """Make the project a git repository, and put csp on the PATH as a clone's bin/ does."""
    place.program("csp", f'#!/bin/sh\nexec {sys.executable} -P -m csp.cli "$@"\n')
    (place.dir / "notes.txt").write_text("a project\n")
    (place.dir / "my-agent").write_text(_AGENT)
    (place.dir / "my-agent").chmod(0o755)
    git(place.dir, "init", "--quiet")
    git(place.dir, "add", ".")
    git(place.dir, "commit", "--quiet", "-m", "start")


def local(command: str, place: Place) -> str:
    """Return a command with the paths and the port of this place."""
    port = place.env["CSP_PORT"] if not place.state.exists() else str(place.room.url.rpartition(":")[2])
    # curl itself is content with an answer that says no.
    command = re.sub(r"\bcurl\b", "curl --fail-with-body", command)
    return command.replace("./bin/", f"{ROOT}/bin/").replace("localhost:8765", f"localhost:{port}")


def missing(shown: list[str], output: str) -> list[str]:
    """Return the shown lines that the output does not have; numbers may differ, `…` is anything."""
    lines = output.splitlines()
    return [line for line in shown if line and not any(re.fullmatch(pattern(line), one) for one in lines)]


def pattern(line: str) -> str:
    numbered = re.sub(r"\d+", r"\\d+", re.escape(line))
    return numbered.replace("…", ".*").strip()
