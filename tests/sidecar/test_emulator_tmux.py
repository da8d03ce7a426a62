"""Both emulators against a real tmux that is given the same bytes."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from csp.sidecar.emulator import KINDS, make_emulator
from tests.sidecar.recordings import trimmed
from tests.waiting import wait_until_sync

ROWS: Final = 10
COLS: Final = 40
LINES: Final = "\r\n".join(f"line {number}" for number in range(8))

SAME: Final = {
    "kanji that wraps": "日本語テスト漢字かな交じり文を右端で折り返すとどうなるかを見る\r\nabc",
    "a wide character at the last column": "a" * 39 + "日本",
    "a wide character in the last two columns": "a" * 38 + "日本",
    "combining marks": "e\u0301a\u0308o\u0302 x\u0301\u0302y",
    "a combining mark at the margin": "a" * 39 + "e\u0301bc",
    "hangul": "한국어 테스트 \u1112\u1161\u11ab x",
    "thai with marks": "ภาษาไทย ทดสอบ",
    "arabic": "مرحبا بالعالم",
    "emoji": "👍 ok 🎉 done ✅ ❌ ⚡",
    "joined emoji": "👨‍👩‍👧 family x",
    "a flag": "🇨🇭 flag x",
    "signs of the CLIs": "⠋ Working… • › ❯\xa0✻ ⎿ ● ✦ ■ ⚠",
    "ambiguous widths": "α β ± × § ° ½ … — “q” ■",
    "boxes": "┌──┐\r\n│ab│\r\n╰──╯",
    "a scroll": "".join(f"line {number}\r\n" for number in range(30)),
    "a region at the top": LINES + "\x1b[1;5r\x1b[5;1H\n\n\n\x1b[r",
    "a region, lines put in": LINES + "\x1b[2;5r\x1b[3;1H\x1b[Lq\x1b[M\x1b[M\x1b[r",
    "origin mode": "\x1b[3;6r\x1b[?6h\x1b[1;1Hx\x1b[9;1Hy\x1b[?6l\x1b[Hz\x1b[r",
    "the other screen, left again": "main\r\n\x1b[?1049hALT\x1b[5;5Hx\x1b[?1049lback",
    "the other screen": "main\r\n\x1b[?1049h\x1b[HALT\x1b[5;5Hx",
    "the other screen of old": "main\r\n\x1b[?47h\x1b[5;5Hx\x1b[?47lback",
    "tabs": "a\tb\tc\r\n\x1b[3gx\ty\r\n\x1b[1;5H\x1bH\r\tz",
    "a tab at the margin": "\x1b[1;39H\tx\ty",
    "lines put in, taken out": LINES + "\x1b[3;1H\x1b[2Lnew\x1b[6;1H\x1b[1M",
    "characters put in, taken out": "abcdefghij\x1b[1;3H\x1b[3@XY\x1b[1;8H\x1b[2P\x1b[1;2H\x1b[2X",
    "insert mode": "abcdef\x1b[1;3H\x1b[4hXYZ\x1b[4lQ",
    "erase to the end": LINES + "\x1b[4;2H\x1b[J",
    "erase to the start": LINES + "\x1b[4;2H\x1b[1J",
    "erase with the history": LINES * 4 + "\x1b[2J\x1b[3J\x1b[Hnew",
    "erase in a line": "abcdefgh\x1b[1;4H\x1b[K\r\nabcdefgh\x1b[4D\x1b[1K\r\nabcdef\x1b[2Kx",
    "erase with a colour": "\x1b[44mabc\x1b[K\x1b[0m\r\nx",
    "up from the margin": "a" * 40 + "\x1b[Ab\r\nx",
    "a new line at the margin": "a" * 40 + "\r\nb",
    "a colour at the margin": "a" * 40 + "\x1b[31mb",
    "no wrap": "\x1b[?7l" + "a" * 50 + "b\x1b[?7h\r\nx",
    "scrolled by command": LINES + "\x1b[2S\x1b[1T",
    "reverse index": "a\r\nb\x1b[H\x1bMtop\x1b[5;1H\x1bMx\x1bDy\x1bEz",
    "cursor kept": "\x1b[3;3H\x1b7\x1b[5;5Hx\x1b8y\x1b[s\x1b[1;1Hz\x1b[uw",
    "repeated": "ab\x1b[5bc",
    "strings": "a\x1bPq#0;2;0;0;0#0!10~\x1b\\b\x1b_Gi=1;AAAA\x1b\\c\x1b^pm\x1b\\d",
    "commands": "a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\c\x1b]52;c;AAAA\x07d",
    "private sequences": "a\x1b[>4;2mb\x1b[>1uc\x1b[?2026hd\x1b[?2026le\x1b[<uf\x1b[>qg\x1b[2 qi",
    "colons": "\x1b[4:3ma\x1b[38:2::1:2:3mb\x1b[0mc\x1b[58:5:1md",
    "soft reset": "abc\x1b[?25l\x1b[3;4r\x1b[!pnew",
    "line moves": "\x1b[5;5Ha\x1b[2Eb\x1b[Fc\x1b[3Gd\x1b[4de\x1b[8`h",
    "controls": "a\nb\x0bc\x0cd",
    "controls inside a sequence": "abc\x1b[\r2Cx\x1b[1\n;5Hy",
    "cancelled": "abc\x1b[3\x18Dx\x1b]0;t\x18y\x1b[3\x1aDz",
    "two escapes": "a\x1b\x1b[Cb",
    "words that wrap": "The quick brown fox jumps over the lazy dog and runs away from it all",
    "test pattern": "\x1b#8\x1b[2;2Hx",
    "far moves": "\x1b[999;999Hx\x1b[99A\x1b[99Dy",
    "C1 as characters": "a\x85b",
}

# tmux 3.3a differs here from what xterm, VTE, kitty, Ghostty draw; the rows were written by hand.
OWN: Final[dict[str, tuple[str | bytes, list[str]]]] = {
    "half of a wide character erased": ("日本語\x1b[1;2H\x1b[1X", ["  本語"]),
    "half of a wide character overwritten": ("日本語\x1b[1;2HX\x1b[1;5HY", [" X本Y"]),
    "line drawing": ("\x1b(0lqqk\x1b(B\r\n\x1b(0x\x1b(Bab\x1b(0x\x1b(B", ["┌──┐", "│ab│"]),
    "line drawing by shift": ("\x1b)0a\x0eqq\x0fb", ["a──b"]),
    "relative moves": ("\x1b[2ax\x1b[2ey", ["  x", "", "   y"]),
    "tabs by command": ("\x1b[1;30Hx\x1b[2Zy\x1b[Iz", ["                y       z    x"]),
    "a skin tone": ("👍🏽\x1b[1;3Hx", ["👍🏽x"]),
    "a heart in colour": ("❤️\x1b[1;3Hx", ["❤️x"]),
    "bytes that are not UTF-8": (b"a\xffb\xc3(c", ["a\ufffdb\ufffd(c"]),
    "an erase at the margin": ("a" * 40 + "\x1b[Kb", ["a" * 39 + "b"]),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a terminal has made of some bytes."""

    rows: list[str]
    history: list[str]
    cursor: tuple[int, int]
    is_alternate: bool
    is_cursor_visible: bool


class Tmux:
    """One pane of a real tmux, on a socket of its own."""

    def __init__(self, folder: Path) -> None:
        self._socket = folder / "tmux.sock"
        self._file = folder / "output"
        self._count = 0
        self._run("new-session", "-d", "-x", str(COLS), "-y", str(ROWS), "-s", "s", "cat")
        for option in (("status", "off"), ("history-limit", "2000"), ("remain-on-exit", "on")):
            self._run("set-option", "-g", *option)
        self._run("resize-window", "-t", "s", "-x", str(COLS), "-y", str(ROWS))

    def shown(self, data: bytes) -> Shown:
        """Give the bytes to the pane, with a title at the end that says that it has read them all."""
        self._count += 1
        self._file.write_bytes(data + b"\x1b\\\x1b]2;done %d\x07" % self._count)
        self._run("respawn-pane", "-k", "-t", "s", f"stty raw -echo; cat '{self._file}'; exec sleep 600")
        wait_until_sync(lambda: self._ask("#{pane_title}") == f"done {self._count}", what="tmux at the end")
        cursor_x, cursor_y, alternate, visible = self._ask(
            "#{cursor_x} #{cursor_y} #{alternate_on} #{cursor_flag}"
        ).split()
        shown = Shown(
            rows=trimmed(self._run("capture-pane", "-p", "-t", "s").split("\n")),
            history=trimmed(self._run("capture-pane", "-p", "-S", "-", "-t", "s").split("\n")),
            cursor=(min(int(cursor_x), COLS - 1), int(cursor_y)),
            is_alternate=alternate == "1",
            is_cursor_visible=visible == "1",
        )
        self._run("clear-history", "-t", "s")
        return shown

    def close(self) -> None:
        self._run("kill-server")
        self._socket.unlink(missing_ok=True)

    def _ask(self, question: str) -> str:
        return self._run("display-message", "-p", "-t", "s", question).strip()

    def _run(self, *arguments: str) -> str:
        command = ["tmux", "-f", os.devnull, "-u", "-S", str(self._socket), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout


@pytest.fixture(scope="module")
def tmux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tmux]:
    server = Tmux(tmp_path_factory.mktemp("tmux"))
    yield server
    server.close()


def shown_by(kind: str, data: bytes) -> Shown:
    emulator = make_emulator(ROWS, COLS, prefer=kind)
    emulator.feed(data)
    screen = emulator.screen()
    return Shown(
        rows=trimmed([row.text for row in screen.rows]),
        history=trimmed(emulator.history()),
        cursor=(screen.cursor_col, screen.cursor_row),
        is_alternate=screen.alternate,
        is_cursor_visible=screen.cursor_visible,
    )


@pytest.mark.parametrize("name", SAME)
def test_all_is_as_in_tmux(tmux: Tmux, name: str) -> None:
    data = SAME[name].encode()
    expected = tmux.shown(data)

    assert {kind: shown_by(kind, data) for kind in KINDS} == dict.fromkeys(KINDS, expected)


@pytest.mark.parametrize("name", OWN)
def test_where_tmux_is_wrong_the_rows_are_right(name: str) -> None:
    data, expected = OWN[name]

    assert {
        kind: shown_by(kind, data if isinstance(data, bytes) else data.encode()).rows for kind in KINDS
    } == dict.fromkeys(KINDS, expected)
