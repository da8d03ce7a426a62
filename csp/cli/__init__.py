"""Run the csp command line and return its exit code."""

import io
import os
import sys

from csp.errors import BadInput, CspError
from csp.fast_start import failure_report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from csp.trust import Untrusted

DONE = 0
FAILED = 1
MISUSED = 2
INTERRUPTED = 130
BROKEN_PIPE = 141


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run a command line; return 0 for success, 1 for failure or 2 for misuse, and never show a traceback."""
    for stream in (sys.stdout, sys.stderr):
        # Escape text that the locale cannot encode, so that an agent's text cannot make a command fail.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    failure_report.claim()
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        code = _run(words)
        if sys.stdout:
            sys.stdout.flush()
    except SystemExit as exc:
        return exc.code if isinstance(exc.code, int) else FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _abandon_stdout()
        return BROKEN_PIPE
    except Exception as exc:
        return _fail(exc, is_verbose="--verbose" in words)
    return code


def _run(argv: list[str]) -> int:
    argv = with_verb(argv)
    if argv[:1] == ["sidecar"]:
        from csp.cli.fast_sidecar import start_plain_sidecar

        start_plain_sidecar(argv[1:])
    if argv[:1] == ["stop"]:
        from csp.cli.fast_allstop import stop_plainly

        if stop_plainly(argv[1:]):
            return DONE
    from csp.cli.parser import parse, setting_flags
    from csp.config import current_dir, load_settings

    verb, args = parse(argv)

    def ask(found: "Untrusted") -> bool:
        """Ask the user to trust a csp.toml."""
        from csp.cli.trust import may_use
        from csp.config import process_environment

        return may_use(found, args, process_environment())

    settings = load_settings(setting_flags(args), ask=ask)
    if args.verbose or verb.name == "gateway":
        from csp.cli.logging_setup import configure

        configure(is_verbose=args.verbose)
    from csp.cli.verb_call import VerbCall

    return verb.load()(VerbCall(args=args, settings=settings, cwd=current_dir(), argv=tuple(argv)))


def with_verb(argv: list[str]) -> list[str]:
    """Return the command line with a verb added if it has none.

    Options without a verb are those of `up`. On a terminal, a bare `csp` opens or attaches to the directory's
    room; elsewhere it prints the help.
    """
    if not argv:
        streams = (sys.stdin, sys.stdout)
        return ["up"] if all(stream and stream.isatty() for stream in streams) else ["--help"]
    at = 0
    while at < len(argv):
        if argv[at] == "--room":
            at += 2
        elif argv[at] == "--verbose" or argv[at].startswith("--room="):
            at += 1
        else:
            break
    if at < len(argv) and (not argv[at].startswith("-") or argv[at] in ("-h", "--help", "--version")):
        return argv
    return ["up", *argv]


def _fail(error: Exception, *, is_verbose: bool) -> int:
    """Report a failure in one line; return the exit code."""
    from csp.cli.output import talk

    advice = ""
    if isinstance(error, CspError):
        message, hint = error.message, error.hint
        advice = hint
    elif isinstance(error, OSError):
        _abandon_stdout()
        where = f"{error.filename!r}: " if error.filename else ""
        message, hint = f"{where}{(error.strerror or str(error)).lower()}", ""
    else:
        if is_verbose:
            from csp.cli.logging_setup import log_failure

            log_failure(error)
        message, hint = f"unexpected error: {type(error).__name__}: {error}", ""
        advice = "" if is_verbose else "add --verbose for more"
    message, hint, advice = (" ".join(text.splitlines()) for text in (message, hint, advice))
    talk(f"csp: {message} ({advice})" if advice else f"csp: {message}")
    failure_report.report(message, hint)
    return MISUSED if type(error) is BadInput else FAILED


def _abandon_stdout() -> None:
    """Keep Python from retrying a failed write to stdout at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return
