"""Declare a verb's arguments next to the function that executes it."""

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from csp.config import nearest
from csp.errors import BadInput
from csp.setting_types import COUNT, NUMBER, SettingType, read_text

if TYPE_CHECKING:
    from csp.cli.verb_call import VerbCall

    Run = Callable[[VerbCall], int]
    RunForm = Callable[[VerbCall, list[str]], int]

#: A number of words that no command line reaches.
ANY: Final = 1 << 20


class Arg(NamedTuple):
    """One argument or option, with keyword arguments for argparse."""

    name: str
    help: str
    options: Mapping[str, Any]


def value(name: str, metavar: str, help: str, **options: Any) -> Arg:
    """Return a positional argument, or an option with a value."""
    return Arg(name, help, {"metavar": metavar, **options})


def switch(flag: str, help: str) -> Arg:
    """Return an option without a value."""
    return Arg(flag, help, {"action": "store_true"})


def read_as(kind: SettingType[Any]) -> Callable[[str], Any]:
    """Return an argparse type function that parses a value as a setting of this kind."""

    def read(text: str) -> Any:
        try:
            return read_text(kind, text, "")
        except BadInput as exc:
            raise argparse.ArgumentTypeError(exc.message.removeprefix(": ")) from exc

    return read


WHOLE: Final = read_as(COUNT)
SECONDS: Final = read_as(NUMBER)

JSON: Final = switch("--json", "print JSON for scripts")
YES: Final = switch("--yes", "skip the confirmation")
TRUST: Final = switch("--trust", "accept the settings in this project's csp.toml without asking")
HISTORY_DIR: Final = value("--history", "DIR", "folder for the journals")
NATS: Final = (
    value("--nats-ca", "FILE", "certificates to check NATS servers with, in PEM format"),
    value("--nats-creds", "FILE", "credentials for NATS servers: a creds file, or the seed of an NKey"),
)
INSECURE: Final = switch("--insecure", "allow an address other than loopback without TLS")
THREAD: Final = value("--thread", "T", "thread of the session")
ROLES: Final = ("agent", "orchestrator")

#: Options that are allowed before and after any verb.
GLOBAL: Final = (
    value("--room", "NAME", "room to use; default: the room of this directory"),
    switch("--verbose", "log details to stderr"),
)


class Handler(NamedTuple):
    """A verb's function, its arguments, and usage examples."""

    run: "Run"
    args: tuple[Arg, ...]
    examples: tuple[str, ...]

    def __call__(self, call: "VerbCall") -> int:
        return self.run(call)


def takes(*args: Arg, examples: tuple[str, ...]) -> "Callable[[Run], Handler]":
    """Declare the decorated function's arguments; `{verb}` in an example stands for the verb's name."""
    return lambda run: Handler(run, args, examples)


class _Form(NamedTuple):
    """One form, with its function, the maximum number of words and its options."""

    do: "RunForm"
    words: int
    options: tuple[str, ...]


class Forms:
    """A verb's forms, such as `csp mode set`, each with its own words and options."""

    def __init__(self, verb: str, default: str) -> None:
        self._verb = verb
        self._default = default
        self._forms: dict[str, _Form] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._forms

    def form(
        self, name: str, words: int = 0, options: tuple[str, ...] = ()
    ) -> "Callable[[RunForm], RunForm]":
        """Register the decorated function as a form."""

        def add(do: "RunForm") -> "RunForm":
            self._forms[name] = _Form(do, words, options)
            return do

        return add

    def do(self, call: "VerbCall") -> int:
        """Run the form named by the first word; raise for arguments that only other forms accept."""
        name, *words = call.args.form or [self._default]
        form, command, help_hint = self._forms.get(name), f"csp {self._verb}", f"see: csp {self._verb} --help"
        if form is None:
            what = f"unknown form {name!r} of {self._verb}, expected one of: {', '.join(self._forms)}"
            raise BadInput(what, nearest(name, list(self._forms)) or help_hint)
        if len(words) > form.words:
            raise BadInput(f"{command} {name} does not accept {words[form.words]!r}", help_hint)
        others = {option for one in self._forms.values() for option in one.options} - set(form.options)
        for option in sorted(others):
            if getattr(call.args, option) not in (None, False):
                raise BadInput(f"{command} {name} does not accept --{option.replace('_', '-')}", help_hint)
        return form.do(call, words)
