"""The test command of a run, with all that it may do."""

from pathlib import Path

import pytest

from csp.review.testing import MAX_OUTPUT_CHARS, run_tests

ENV = {"PATH": "/usr/bin:/bin", "CSP_AUTH_TOKEN": "s3cr3t", "GIT_DIR": "/nowhere"}


@pytest.mark.parametrize(
    ("command", "code", "output"), [("echo hi", 0, "hi\n"), ("echo no >&2; exit 3", 3, "no\n")]
)
async def test_code_and_output_are_kept(tmp_path: Path, command: str, code: int, output: str) -> None:
    result = await run_tests(command, tmp_path, 20, ENV)

    assert (result.code, result.passed, result.output) == (code, code == 0, output)


async def test_command_that_takes_too_long_ends_with_its_children(tmp_path: Path) -> None:
    result = await run_tests("echo begun; sleep 600 & sleep 600; echo never", tmp_path, 0.5, ENV)

    assert (result.timed_out, result.passed, result.code) == (True, False, None)
    assert result.output == "begun\n" and result.seconds < 20


async def test_flood_leaves_its_end(tmp_path: Path) -> None:
    result = await run_tests("yes | head -c 3000000; echo; echo the end", tmp_path, 60, ENV)

    assert len(result.output) == MAX_OUTPUT_CHARS and result.output.endswith("the end\n")


async def test_command_knows_no_secret_of_the_room(tmp_path: Path) -> None:
    result = await run_tests("env", tmp_path, 20, ENV)

    assert "s3cr3t" not in result.output and "GIT_DIR" not in result.output


async def test_place_that_is_gone_is_a_failed_test(tmp_path: Path) -> None:
    result = await run_tests("true", tmp_path / "gone", 20, ENV)

    assert not result.passed and "cannot be run" in result.output
