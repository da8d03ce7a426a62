"""Run the csp command: argv in, exit code out."""

import io
import os
import sys

from csp.errors import BadInput, Broken, CspError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Sequence

    from csp.trust import Ask, Untrusted

DONE = 0
FAILED = 1
MISUSED = 2
INTERRUPTED = 130
BROKEN_PIPE = 141


def main(argv: "Sequence[str] | None" = None) -> int:
    """Do what the command line says; return 0 done, 1 failed, 2 misused, and never a traceback."""
    _accept_any_text()
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
    except CspError as exc:
        return _fail(exc)
    except OSError as exc:
        _abandon_stdout()
        return _fail(_as_broken(exc))
    except Exception as exc:
        return _fail_unexpected(exc, is_verbose="--verbose" in words)
    return code


def _run(argv: list[str]) -> int:
    if argv[:1] == ["sidecar"]:
        from csp.cli.fast_sidecar import start_plain_sidecar

        start_plain_sidecar(argv[1:])
    if argv[:1] == ["stop"]:
        from csp.cli.fast_stop import stop_plainly

        if stop_plainly(argv[1:]):
            return DONE
    from csp.cli.parser import parse, setting_flags
    from csp.config import current_dir, load_settings

    verb, args = parse(argv)
    settings = load_settings(setting_flags(args), ask=_ask_about_trust(args))
    if args.verbose or verb.name == "gateway":
        from csp.cli.logging_setup import configure

        configure(is_verbose=args.verbose)
    from csp.cli.verb_call import VerbCall

    call = VerbCall(args=args, settings=settings, cwd=current_dir(), argv=tuple(argv))
    return _find(verb.run)(call)


def _ask_about_trust(args: "Namespace") -> "Ask":
    """Return the function that asks the user to trust a csp.toml."""

    def ask(found: "Untrusted") -> bool:
        from csp.cli.trust import asker
        from csp.config import process_environment

        return asker(args, process_environment())(found)

    return ask


def _find(name: str) -> "Callable[..., int]":
    """Import the function of a verb."""
    from importlib import import_module

    module, _, function = name.partition(":")
    found: Callable[..., int] = getattr(import_module(f"csp.cli.{module}"), function)
    return found


def _accept_any_text() -> None:
    """Escape text that the locale cannot show, so that an agent's words cannot end a command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _fail(error: CspError) -> int:
    from csp.cli.output import talk

    line = f"csp: {error.message}" + (f" ({error.hint})" if error.hint else "")
    talk(" ".join(line.splitlines()))
    return MISUSED if type(error) is BadInput else FAILED


def _fail_unexpected(error: Exception, *, is_verbose: bool) -> int:
    from csp.cli.output import talk

    if is_verbose:
        from csp.cli.logging_setup import log_failure

        log_failure(error)
    said = " ".join(f"{type(error).__name__}: {error}".splitlines())
    talk(f"csp: unexpected error: {said}" + ("" if is_verbose else " (add --verbose for more)"))
    return FAILED


def _as_broken(error: OSError) -> Broken:
    where = f"{error.filename!r}: " if error.filename else ""
    return Broken(f"{where}{(error.strerror or str(error)).lower()}")


def _abandon_stdout() -> None:
    """Keep Python from writing at exit what could not be written before."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return
