"""Whether a dialog on the screen shows the command that an approval rule is for."""

import pytest

from csp.terminal.dialog_command import shows_command


@pytest.mark.parametrize(
    ("subject", "command"),
    [
        ("Bash command\n\npytest -q\nRun the tests", "pytest -q"),
        ("Environment: local\n\nReason: tests\n\n$ pytest -q", "pytest -q"),
        ("? Shell\n\npytest -q tests/a\ntests/b", "pytest -q tests/a tests/b"),
        ("pytest -q", "pytest -q"),
        ("pytest tests/a_very_long_na\nme.py\nRun it", "pytest tests/a_very_long_name.py"),
    ],
)
def test_the_whole_command_at_the_start_of_a_paragraph_is_shown(subject: str, command: str) -> None:
    assert shows_command(subject, command)


@pytest.mark.parametrize(
    ("subject", "command"),
    [
        ("Bash command\n\nrm -rf build && pytest -q", "pytest -q"),
        ("Bash command\n\nrm -rf build &&\npytest -q", "pytest -q"),
        ("Bash command\n\npytest -q; rm -rf x", "pytest -q"),
        ("Bash command\n\npytest tests/a_very…", "pytest tests/a_very_long_name.py"),
        ("Bash command\n\nrm -rf build\nThen pytest -q", "pytest -q"),
        ("", "pytest -q"),
        ("pytest -q", ""),
    ],
)
def test_anything_else_is_not(subject: str, command: str) -> None:
    assert not shows_command(subject, command)
