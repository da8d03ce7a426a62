"""Ratios are judged the right way round."""

import pytest

from tests.bench.results import BEGIN, END, Limit, Result, Rounds, markdown_table, said, text_table


@pytest.mark.parametrize(
    ("ratio", "more_is_better", "verdict"),
    [
        (9.0, True, "NOT MET"),
        (10.0, True, "must met"),
        (20.0, True, "aim met"),
        (21.0, False, "NOT MET"),
        (20.0, False, "must met"),
        (10.0, False, "aim met"),
    ],
)
def test_the_verdict_depends_on_the_direction(ratio: float, more_is_better: bool, verdict: str) -> None:
    must, aim = (10, 20) if more_is_better else (20, 10)

    assert Result(Limit("what", must, aim, more_is_better), [ratio]).verdict == verdict


def test_a_ratio_is_the_median_of_same_round_ratios() -> None:
    ours, theirs = iter([1.0, 10.0, 9.0]), iter([2.0, 10.0, 3.0])
    rounds = Rounds({"ours": lambda: next(ours), "theirs": lambda: next(theirs)}, 3, lambda _: None)

    assert Result(Limit("what"), *rounds.ratio("ours", "theirs", "ms")).figure == 1.0


def test_variants_take_turns() -> None:
    order: list[str] = []

    def variant(name: str) -> float:
        order.append(name)
        return 1.0

    Rounds({name: lambda name=name: variant(name) for name in "ab"}, 2, lambda _: None)  # type: ignore[misc]

    assert "".join(order) == "abba"


@pytest.mark.parametrize(("ratio", "text"), [(1 / 240, "1/240"), (0.36, "0.36"), (12.41, "12.4"), (None, "")])
def test_a_ratio_is_said_as_people_say_it(ratio: float | None, text: str) -> None:
    assert said(ratio) == text


def test_what_is_not_installed_is_left_out_with_the_reason() -> None:
    cells = Result(Limit("what", 1, 2), missing="NATS is not installed").cells()

    assert cells == ("what", "1.00", "2.00", "", "", "left out", "NATS is not installed")


def test_a_result_survives_its_file() -> None:
    result = Result(Limit("what", 1, 2), [1.0, 2.0], "note")

    assert Result.from_json(result.as_json()) == result


def test_the_markdown_table_is_between_its_markers() -> None:
    table = markdown_table([Result(Limit("what", 1, 2), [1.0])], "remark").splitlines()

    assert (table[0], table[-1]) == (BEGIN, END)
    assert "| what | 1.00 | 2.00 | 1.00 | 1.00 .. 1.00 | aim met |  |" in table


def test_the_table_for_a_terminal_has_a_row_for_each_result() -> None:
    assert len(text_table([Result(Limit("what"), [1.0])] * 3).splitlines()) == 4
