"""The completion scripts, each of them made from the table of verbs."""

import subprocess

import pytest

from csp.cli.completion import bash, fish, zsh
from csp.cli.verbs import VERBS


def complete(*words: str) -> list[str]:
    """Return what bash would offer behind these words."""
    line = " ".join(f"'{word}'" for word in words)
    asked = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _csp"
    script = f"{bash()}\n{asked}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=90, check=True)
    return done.stdout.split()


def test_bash_offers_every_verb() -> None:
    assert set(complete("csp", "")) >= {verb.name for verb in VERBS}
    assert complete("csp", "--room", "x", "hist") == ["history"]


def test_bash_offers_the_flags_of_the_verb() -> None:
    assert complete("csp", "send", "claude", "--wa") == ["--wait"]
    assert complete("csp", "completion", "z") == ["zsh"]


@pytest.mark.parametrize("script", [bash, zsh, fish])
def test_every_script_knows_every_verb_with_its_flags(script: object) -> None:
    assert callable(script)
    text = script()

    for verb in VERBS:
        assert verb.name in text
        assert all(arg.name.removeprefix("--") in text for arg in verb.load().args if arg.name[0] == "-")
