"""What CSP measures itself beside what a builder says."""

from csp.gateway.run_worker import measured
from csp.protocol.codec import encode, parse
from csp.protocol.review_messages import MAX_ITEMS, DiffFigures, ExecutionUpdate, TestResult

FIGURES = DiffFigures(base="a", commit="b", files=2, insertions=3, deletions=1)


def test_most_metrics_of_a_builder_leave_room_for_those_of_csp() -> None:
    said: dict[str, float | str] = {f"m{number}": 1.0 for number in range(MAX_ITEMS)}
    tests = TestResult(command="make", passed=True, seconds=0.5)
    update = measured(ExecutionUpdate(step="s", final=True, metrics=said, figures=FIGURES, tests=tests))

    assert parse(ExecutionUpdate, encode(update)) == update
    assert update.metrics["csp.tests_passed"] == 1.0 and len(update.metrics) == MAX_ITEMS + 5


def test_tests_that_were_only_claimed_are_not_measured() -> None:
    tests = TestResult(command="make", passed=True, claimed=True)

    assert measured(ExecutionUpdate(step="s", tests=tests)).metrics == {}
