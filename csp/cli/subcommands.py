"""The forms of a verb, such as `csp mode set`, each with its own arguments and options."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from csp.cli.verb_call import VerbCall
from csp.config import nearest
from csp.errors import BadInput

#: More words than a command line has.
ANY: Final = 1 << 20


class Form(NamedTuple):
    """One form: its function, the number of words it takes and its options."""

    do: Callable[[VerbCall, list[str]], int]
    words: int = 0
    options: tuple[str, ...] = ()


def do_form(call: VerbCall, verb: str, forms: Mapping[str, Form], default: str) -> int:
    """Run the form that the first word names; refuse arguments that only other forms take."""
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
