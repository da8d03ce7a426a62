"""The knobs of the scripted TUI, as its command line has them."""

import argparse
import re
from typing import Final

FOREVER: Final = -1
FRAMES: Final = ("sign", "box", "bar", "rules")


def parse(argv: list[str]) -> argparse.Namespace:
    """Read the knobs; what is not known is ignored, since a profile's wiring may add arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.tui", allow_abbrev=False)
    _add_looks(parser)
    _add_turns(parser)
    _add_dialogs(parser)
    _add_ends(parser)
    knobs, unknown = parser.parse_known_args(argv)
    knobs.unknown = unknown
    return knobs


def _add_looks(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--log", default="", help="JSON lines: what was submitted, approved, denied (the ground truth)")
    add("--alternate", action="store_true", help="draw in the alternate screen")
    add("--no-paste", action="store_true", help="never set bracketed paste (?2004)")
    add("--prompt-sign", default="> ")
    add("--placeholder", default="", help="faint text in the empty composer")
    add("--draft", default="", help="stands in the composer from the start")
    add("--collapse", type=int, default=0, help="a paste of more lines is drawn as a marker")
    add("--marker", default="[Pasted text #1 +{more} lines]", help="drawn in place of such a paste")
    add("--frame", choices=FRAMES, default="sign", help="what the composer is set off by")
    add(
        "--at-top",
        action="store_true",
        help="the composer is above the conversation, in the alternate screen",
    )
    add("--drawn-caret", action="store_true", help="hide the cursor, draw a cell in reverse video")
    add("--no-caret", action="store_true", help="hide the cursor, draw none")
    add("--plain-placeholder", action="store_true", help="the placeholder is not faint")
    add("--echo-ms", type=int, default=0, help="the composer is drawn that much later")
    add("--title", action="store_true", help="tell idle and busy in the window title")
    add("--osc", action="store_true", help="tell the state by OSC 7501, as Codex does")
    add("--chatter-ms", type=int, default=0, help="draw the whole live part again on this period")


def _add_turns(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--busy-s", type=float, default=0.0, help="how long each turn takes")
    add("--spinner-ms", type=int, default=0, help="the sign of work changes on this period")
    add("--working", default="Working… (esc to interrupt)", help="the sign of work; {spinner} moves in it")
    add("--work-below", action="store_true", help="the sign of work is below the composer")
    add("--works-always", action="store_true", help="the sign of work shows without a turn too")
    add("--busy-enter", choices=("queue", "abort", "ignore"), default="queue")
    add(
        "--reply",
        default="reply to: {first}",
        help="{prompt}, {first} (its first line), {n}; \\n is a line break",
    )
    add("--reply-file", default="", help="the reply is this file's text")
    add(
        "--swallow-ms",
        type=int,
        default=0,
        help=f"Enter is lost for so long after a paste; {FOREVER}: always",
    )
    add(
        "--break-first",
        type=int,
        default=0,
        help=f"the first N Enters after a paste break the line; {FOREVER}",
    )
    add("--path", default="", help="a line that always stands above the composer")
    add("--no-echo", action="store_true", help="what was submitted does not show in the conversation")
    add("--clear-on-submit", action="store_true", help="the screen is cleared by each submission")
    add("--blank-ms", type=int, default=0, help="the screen is blank for so long after each submission")
    add("--swallow-first", type=int, default=0, help="the first N Enters after each paste are lost")
    add("--transcript", default="", help="write turns here in the form of Claude's transcripts")
    add("--session-id", default="00000000-0000-4000-8000-000000000001")
    add("--settings", default="", help="hooks in the form of Claude's settings, a file or JSON")
    add("--no-submit-hook", action="store_true", help="UserPromptSubmit is not told")


def _add_dialogs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--start-ms", type=int, default=0, help="nothing is drawn or read before")
    add("--loading", default="", help="a line that is written at once, before the start")
    add("--deaf-ms", type=int, default=0, help="what is read so soon after the start is acted on only then")
    add("--blocked", choices=("trust", "login"), default="", help="a screen at start that needs a person")
    add("--dialog-at-start", action="store_true")
    add("--dialog-after-s", type=float, default=0.0)
    add("--dialog-after-idle-ms", type=int, default=FOREVER, help="opens so long after a turn's idle sign")
    add("--dialog-on", type=re.compile, default=None, help="a prompt that matches asks before it is answered")
    add("--dialog-command", default="touch approved.txt", help="what the dialog asks to run")


def _add_ends(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--exit-after-s", type=float, default=0.0)
    add("--exit-on", type=re.compile, default=None, help="a prompt that matches ends the program")
    add("--exit-code", type=int, default=0)
    add("--crash-after-s", type=float, default=0.0, help="dies by SIGKILL")
