"""Turn argv into a verb with its arguments."""

import argparse
import os
from collections.abc import Sequence
from typing import Final, NoReturn

from csp import __version__
from csp.cli.arguments import GLOBAL, Arg
from csp.cli.verbs import VERBS, Verb
from csp.config import ROWS, nearest
from csp.errors import BadInput

_FLAGS = {row.flag: row for row in ROWS if row.flag}
_ABOUT = "A group chat for people and interactive AI agents."
_WITHOUT = "Without a verb csp opens the room of this directory, with the options of csp up."
_RULES = "Results go to stdout, messages to stderr. Exit: 0 ok, 1 error, 2 usage."


#: Characters of an error that quotes its argument; a whole message may have been given by mistake.
MAX_SHOWN: Final = 300


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal, without shutil, which argparse would load even without --help."""

    def __init__(self, prog: str) -> None:
        try:
            width = os.get_terminal_size().columns
        except (OSError, ValueError, AttributeError):
            width = 80
        super().__init__(prog, width=max(width, 40) - 2)


class _Parser(argparse.ArgumentParser):
    """A parser that raises BadInput instead of printing its usage."""

    def error(self, message: str) -> NoReturn:
        shown = message if len(message) <= MAX_SHOWN else f"{message[:MAX_SHOWN]}…"
        raise BadInput(shown[:1].lower() + shown[1:], f"see: {self.prog} --help")


def parse(argv: Sequence[str]) -> tuple[Verb, argparse.Namespace]:
    """Return the verb of a command line with its arguments; raise BadInput where they are wrong."""
    for word in argv:
        # Python passes bytes that are not text on as lone surrogates, which no JSON can carry.
        if any("\ud800" <= char <= "\udfff" for char in word):
            raise BadInput(f"expected arguments in utf-8, got {word!r}")
    top = top_parser().parse_args(argv)
    verb = next((verb for verb in VERBS if verb.name == top.verb), None)
    if verb is None:
        known = [verb.name for verb in VERBS]
        raise BadInput(f"unknown verb {top.verb!r}", nearest(top.verb, known) or "see: csp --help")
    words = next((arg.name for arg in verb.load().args if arg.options.get("nargs") == "*"), "")
    # argparse would still read options after --.
    at = top.rest.index("--") if words and "--" in top.rest else len(top.rest)
    args = verb_parser(verb).parse_intermixed_args(top.rest[:at])
    if words:
        setattr(args, words, [*getattr(args, words), *top.rest[at + 1 :]])
    for name in ("room", "verbose"):
        if not getattr(args, name):
            setattr(args, name, getattr(top, name))
    args.verb = verb.name
    return verb, args


def top_parser() -> argparse.ArgumentParser:
    """Return the parser of the options before the verb."""
    width = max(len(verb.name) for verb in VERBS)
    verbs = "\n".join(f"  {verb.name:{width}}  {verb.help}" for verb in VERBS)
    parser = _Parser(
        prog="csp",
        usage="csp [--room NAME] [VERB] ...",
        description=f"{_ABOUT}\n\n{_WITHOUT}\n\nverbs (csp VERB --help says more):\n{verbs}",
        epilog=f"example:\n  csp send claude 'what does parser.py do?' --wait\n\n{_RULES}",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"csp {__version__}")
    _add(parser, GLOBAL)
    parser.add_argument("verb", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def verb_parser(verb: Verb) -> argparse.ArgumentParser:
    """Return the parser of one verb."""
    handler = verb.load()
    examples = "\n  ".join(handler.examples).format(verb=verb.name)
    parser = _Parser(
        prog=f"csp {verb.name}",
        description=verb.help,
        epilog=f"example:\n  {examples}",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    parser.set_defaults(json=False)
    _add(parser, (*handler.args, *GLOBAL))
    return parser


def _add(parser: argparse.ArgumentParser, args: Sequence[Arg]) -> None:
    """Add arguments; a setting has no default here, so that the order of its sources holds."""
    for arg in args:
        row = _FLAGS.get(arg.name)
        options = dict(arg.options) | ({"dest": row.name, "default": None} if row else {})
        parser.add_argument(arg.name, help=arg.help, **options)


def setting_flags(args: argparse.Namespace) -> dict[str, str | None]:
    """Return the settings that were given as flags."""
    return {row.name: getattr(args, row.name, None) for row in _FLAGS.values()}
