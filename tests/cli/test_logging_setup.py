"""Where log records go."""

import logging
import stat
from pathlib import Path

import pytest

from csp.cli.logging_setup import configure, log_to
from csp.cli.replay import news, tail


def test_only_verbose_shows_the_mechanics(capsys: pytest.CaptureFixture[str]) -> None:
    for is_verbose in (False, True):
        configure(is_verbose=is_verbose)
        logging.getLogger("csp.x").debug("mechanics", extra={"agent": "a\x1bb"})
        logging.getLogger("csp.x").info("deed", extra={"agent": "ann"})
    lines = capsys.readouterr().err.splitlines()

    assert [line.partition("csp.x: ")[2] for line in lines] == [
        "deed agent='ann'",
        "mechanics agent='a\\x1bb'",
        "deed agent='ann'",
    ]


def test_a_log_is_for_its_user_alone_and_leaves_out_what_sdks_say(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agents" / "gpt" / "brain.log"
    log_to(path)
    try:
        for name in ("anthropic", "openai", "httpx2", "httpcore2"):
            logging.getLogger(name).info("a call with its headers")
        logging.getLogger("csp.x").info("deed")
        logging.getLogger("csp.x").debug("mechanics")
    finally:
        (handler,) = logging.getLogger().handlers
        assert isinstance(handler, logging.StreamHandler)
        handler.stream.close()

    assert path.read_text().endswith(" INFO csp.x: deed\n") and path.read_text().count("\n") == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert capsys.readouterr() == ("", "")


def test_a_log_goes_on_after_a_restart_and_nothing_in_it_drives_a_terminal(tmp_path: Path) -> None:
    for text in ("first \x1b[2J", "second"):
        log_to(tmp_path / "brain.log")
        logging.getLogger("csp.x").info(text)
        (handler,) = logging.getLogger().handlers
        assert isinstance(handler, logging.StreamHandler)
        handler.stream.close()

    lines = (tmp_path / "brain.log").read_text().splitlines()
    assert [line.partition("csp.x: ")[2] for line in lines] == ["first ␛[2J", "second"]


# --- reading them again --------------------------------------------------------------------------


@pytest.mark.parametrize(("limit", "lines"), [(1, ["c"]), (2, ["b", "c"]), (9, ["a", "b", "c"])])
def test_the_newest_lines_of_a_log_are_shown_whole(tmp_path: Path, limit: int, lines: list[str]) -> None:
    log = tmp_path / "x.log"
    log.write_text("a\nb\nc\nhalf")

    assert tail(log, limit) == (lines, 6)


def test_of_a_large_log_only_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("csp.cli.replay._TAIL_BYTES", 6)
    log = tmp_path / "x.log"
    log.write_text("one\ntwo\nsix\n")

    assert tail(log, 9) == (["o", "six"], 12)


def test_news_are_whole_lines_and_a_new_file_is_read_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("a\nb\nha")
    assert news(log, 2) == (["b"], 4)
    log.write_text("a\nb\nhalf\n")
    assert news(log, 4) == (["half"], 9)
    log.write_text("n\n")
    assert news(log, 9) == (["n"], 2)
    log.unlink()
    assert news(log, 2) == ([], 0)
