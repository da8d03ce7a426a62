"""The forms of a verb, such as `csp mode set`: each with its own words, its own options."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from csp.cli.verb_call import VerbCall
from csp.config import nearest
from csp.errors import BadInput

#: More words than a command line has.
ANY: Final = 1 << 20


class Form(NamedTuple):
    """One form: what it does, how many words behind it are understood, which options."""

    do: Callable[[VerbCall, list[str]], int]
    words: int = 0
    options: tuple[str, ...] = ()


def do_form(call: VerbCall, verb: str, forms: Mapping[str, Form], default: str) -> int:
    """Do what the first word says; refuse words and options that only other forms take."""
    name, *words = call.args.form or [default]
    form, help_hint = forms.get(name), f"see: csp {verb} --help"
    if form is None:
        what = f"unknown form {name!r} of {verb}, expected one of: {', '.join(forms)}"
        raise BadInput(what, nearest(name, list(forms)) or help_hint)
    if len(words) > form.words:
        raise BadInput(f"csp {verb} {name} takes no {words[form.words]!r}", help_hint)
    others = {option for one in forms.values() for option in one.options} - set(form.options)
    for option in sorted(others):
        if getattr(call.args, option) not in (None, False):
            raise BadInput(f"csp {verb} {name} takes no --{option.replace('_', '-')}", help_hint)
    return form.do(call, words)
