"""The short way of csp stop, which must come to the same as the long one."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from csp.cli import fast_allstop, main
from csp.cli.fast_allstop import read_words
from csp.cli.parser import parse
from csp.errors import Forbidden, Unreachable
from csp.http_client import GatewayClient
from tests.cli.live import Done, Place
from tests.cli.test_fast_sidecar import SLOW


@pytest.mark.parametrize(
    "words", [[], ["--all"], ["--room", "den"], ["--all", "--room", "den"], ["--room", "den", "--all"]]
)
def test_plain_words_are_read_as_the_parser_reads_them(words: list[str]) -> None:
    _, args = parse(["stop", *words])

    assert read_words(words) == (args.all, args.room or "")


@pytest.mark.parametrize(
    "words",
    [
        ["--json"],
        ["--help"],
        ["--verbose"],
        ["now"],
        ["--room"],
        ["--room=den"],
        ["--room", "../den"],
        ["--room", "--all", "den"],
        ["--room", "-den"],
        ["--room", "den", "--room", "den"],
        ["--", "--all"],
    ],
)
def test_other_words_are_left_to_the_parser(words: list[str]) -> None:
    assert read_words(words) is None


def test_it_loads_next_to_nothing() -> None:
    code = "import sys, csp.cli, csp.cli.fast_allstop, csp.http_client; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    bare = subprocess.run(
        [sys.executable, "-I", "-c", "import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert SLOW & (set(run.stdout.split()) - set(bare.stdout.split())) == set()


# --- beside the long way -------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    yield place
    place.close()


def both(place: Place, *words: str) -> tuple[Done, Done]:
    """Stop the short way, then with a settings file that has nothing to say, which is the long way."""
    short = place.python("stop", *words)
    settings = place.home / "csp.toml"
    settings.write_text("[room]\n")
    long = place.python("stop", *words)
    settings.unlink()
    return short, long


@pytest.mark.parametrize("words", [(), ("--all",), ("--room", "default")])
def test_both_ways_say_the_same_of_a_room_at_rest(place: Place, words: tuple[str, ...]) -> None:
    place.gateway()
    short, long = both(place, *words)

    assert short == long == Done(0, "", "No mode is running. To stop an agent: csp interrupt AGENT\n")


def test_a_session_is_stopped_by_its_id(place: Place) -> None:
    place.gateway()
    place.agent("claude")
    place.agent("codex")
    place.csp("mode", "set", "debate", "tabs", "--agents", "claude,codex")

    assert place.python("stop") == Done(0, "", "stopped s-3\n")


@pytest.mark.parametrize("words", [(), ("--room", "nowhere"), ("--room", "No")])
def test_both_ways_say_the_same_without_a_room(place: Place, words: tuple[str, ...]) -> None:
    short, long = both(place, *words)

    assert short == long
    assert (short.code, short.out) == (2 if "No" in words else 1, "") and short.err.startswith("csp: ")


class Plain:
    """A machine with one room, whose gateway does what a test wants."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(
            fast_allstop, "plain_room", lambda chosen, env: ("http://127.0.0.1:9", "t", "den")
        )
        monkeypatch.setattr(fast_allstop, "plain_folder", lambda env: "/")
        monkeypatch.setattr(fast_allstop, "is_plain", lambda env: True)
        self._monkeypatch = monkeypatch

    def stop(self, answer: object, *words: str) -> int:
        def post_once(client: GatewayClient, path: str, body: object) -> object:
            assert (path, body) == ("/stop", {"all": True} if words else {})
            if isinstance(answer, Exception):
                raise answer
            return answer

        self._monkeypatch.setattr(GatewayClient, "post_once", post_once)
        return main(["stop", *words])


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Plain:
    return Plain(monkeypatch)


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        ({"stopped": ["s-1", "s-2"]}, 0, "stopped s-1, s-2"),
        ({"stopped": ["s-\x1b1", "ß"]}, 0, "stopped s-\x1b1, ß"),
        (Unreachable("no gateway answers", "start one"), 1, "csp: no gateway answers (start one)"),
        (Forbidden("only people may"), 1, "csp: only people may"),
    ],
)
def test_an_answer_or_a_refusal_is_told(
    plain: Plain, capsys: pytest.CaptureFixture[str], answer: object, code: int, said: str
) -> None:
    assert plain.stop(answer, "--all") == code
    assert capsys.readouterr() == ("", f"{said}\n")


def test_an_answer_without_what_was_stopped_is_an_error(
    plain: Plain, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plain.stop({"success": True}) == 1
    assert "stopped" in capsys.readouterr().err
