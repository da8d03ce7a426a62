"""The arguments of verbs: their forms take their own words and options, no others."""

import argparse
from pathlib import Path

import pytest

from csp.cli.arguments import ANY, Forms
from csp.cli.verb_call import VerbCall
from csp.config import Settings
from csp.errors import BadInput


def done(*words: str, **options: object) -> list[str]:
    """Do a form of a verb; return its name with the words that reached it."""
    seen: list[str] = []

    forms = Forms("board", default="list")
    for name, size, own in (("list", 0, ()), ("add", 1, ("tag", "is_loud")), ("say", ANY, ("tag",))):

        @forms.form(name, size, own)
        def do(call: VerbCall, words: list[str], name: str = name) -> int:
            seen.extend([name, *words])
            return 3

    given = argparse.Namespace(form=list(words), **{"tag": None, "is_loud": False, "other": "x"} | options)
    assert forms.do(VerbCall(given, Settings(), Path("/"))) == 3
    return seen


def refused(*words: str, **options: object) -> tuple[str, str]:
    with pytest.raises(BadInput) as caught:
        done(*words, **options)
    return caught.value.message, caught.value.hint


def test_a_form_is_done_with_its_words() -> None:
    assert done() == done("list") == ["list"]
    assert done("add", "a note", tag="x", is_loud=True) == ["add", "a note"]
    assert done("say", *["many", "words", "of", "all", "kinds"], tag="") == [
        "say",
        "many",
        "words",
        "of",
        "all",
        "kinds",
    ]


def test_a_word_too_many_is_named() -> None:
    assert refused("list", "x") == ("csp board list does not accept 'x'", "see: csp board --help")
    assert refused("add", "x", "y", "z")[0] == "csp board add does not accept 'y'"


def test_an_option_of_another_form_is_named() -> None:
    assert refused("list", tag="x")[0] == "csp board list does not accept --tag"
    assert refused("say", is_loud=True)[0] == "csp board say does not accept --is-loud"
    # Zero and nothing at all are values too.
    assert refused("list", tag="")[0] == "csp board list does not accept --tag"


def test_an_unknown_form_brings_the_nearest() -> None:
    assert refused("lst") == (
        "unknown form 'lst' of board, expected one of: list, add, say",
        "did you mean 'list'?",
    )
    assert refused("xyzzy")[1] == "see: csp board --help"
