"""Parts run in lanes; every part runs, and one that fails fails the whole."""

import pytest

from tests.suite.parts import Part, run_lanes


def says(text: str, code: int = 0) -> tuple[str, ...]:
    return ("-c", f"import sys; print({text!r}); sys.exit({code})")


def test_all_parts_run_and_state_their_time(capfd: pytest.CaptureFixture[str]) -> None:
    lanes = [
        [Part("tests", says("one"))],
        [Part("style", says("two"), says("three")), Part("types", says("four"))],
    ]

    assert run_lanes(lanes) == 0
    written = capfd.readouterr().out
    assert all(text in written for text in ("one", "two", "three", "four"))
    table = [line.split() for line in written.partition("part        seconds\n")[2].splitlines()]
    assert [(row[0], *row[2:]) for row in table] == [
        ("tests", "ok"),
        ("style", "ok"),
        ("types", "ok"),
        ("together",),
    ]


@pytest.mark.parametrize("lane", [0, 1])
def test_a_part_that_fails_fails_the_run_and_the_others_still_run(
    lane: int, capfd: pytest.CaptureFixture[str]
) -> None:
    lanes = [[Part("tests", says("here"))], [Part("types", says("there"))]]
    lanes[lane].insert(0, Part("style", says("odd", code=3), says("never")))

    assert run_lanes(lanes) == 1
    written = capfd.readouterr().out
    assert "FAILED (exit 3)" in written
    assert "here" in written and "there" in written
    assert "\nnever\n" not in written
