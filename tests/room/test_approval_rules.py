"""Which commands an approval rule covers."""

import pytest

from csp.room.approval_rules import MAX_COMMAND, MAX_PATTERN, covers, exact_rule, is_plain_command


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("pytest", "pytest"),
        ("pytest", "pytest -q tests/room"),
        ("git status", "git  status --short"),
        ("ls", "ls 'a b' *.py ~/x"),
    ],
)
def test_a_rule_covers_its_words_and_more(pattern: str, command: str) -> None:
    assert covers(pattern, command)


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("pytest", "pytest2"),
        ("pytest", "/tmp/pytest"),
        ("pytest", "X=1 pytest"),
        ("pytest -q", "pytest"),
        ("git status", "git push"),
        ("", "pytest"),
        (" ", "pytest"),
        ("pytest", ""),
    ],
)
def test_a_rule_covers_nothing_else(pattern: str, command: str) -> None:
    assert not covers(pattern, command)


@pytest.mark.parametrize(
    "more",
    [
        *("; rm -rf x", "&& rm x", "& rm x", "| sh", "|| rm", "< x", "> x", ">> x", "`rm`", "$(rm)", "$HOME"),
        *("\nrm x", "\r\nrm", "\\\nrm", "(rm)", "{rm,x}", "!rm", "\trm", "\x00", "\x1b[2K"),
        *("\u00a0rm", "\u2028rm", "\u202erm", "\u200brm", "\u3000rm"),
    ],
)
def test_shell_syntax_and_hidden_characters_are_never_covered(more: str) -> None:
    assert not covers("pytest", f"pytest {more}")
    assert not covers("pytest", f"pytest{more}")


def test_a_command_of_more_than_a_screen_is_never_covered() -> None:
    assert is_plain_command("x" * MAX_COMMAND)
    assert not is_plain_command("x" * (MAX_COMMAND + 1))


@pytest.mark.parametrize("more", ["x", "-rf", "build /home", '"a b"'])
def test_a_rule_for_one_command_covers_nothing_that_begins_with_it(more: str) -> None:
    rule = exact_rule("rm -r build")

    assert covers(rule, "rm -r build")
    assert not covers(rule, f"rm -r build {more}")
    assert not covers(rule, "rm -r")
    assert not covers(rule, f"{rule} {more}")


def test_blanks_of_a_name_in_quotes_are_part_of_the_one_command() -> None:
    assert covers("only rm 'a b'", "rm 'a b'")
    assert not covers("only rm 'a b'", "rm 'a  b'")


@pytest.mark.parametrize("command", ["", "a && b", "rm 'a  b'", "x" * MAX_PATTERN])
def test_no_rule_is_for_one_command_that_it_could_not_name(command: str) -> None:
    assert exact_rule(command) == ""
