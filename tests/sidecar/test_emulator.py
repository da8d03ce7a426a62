"""Both emulators on what recordings do not show: sizes, attributes, commands, broken input, memory."""

import base64
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from csp.protocol.screen_frames import RunView, StyleView
from csp.sidecar.emulator import KINDS, Emulator, ghostty_emulator, make_emulator
from csp.sidecar.emulator.escape_sequences import MAX_BYTES, OscReader
from csp.sidecar.emulator.ghostty_emulator import GhosttyEmulator
from csp.sidecar.emulator.pyte_emulator import PyteEmulator

# UTF-8 of every length, sequences of every kind, strings with both ends, a scroll, the other screen.
SAMPLE = (
    "\x1b[1;31mrot\x1b[0m ä 日本 👍 👨‍👩‍👧 e\u0301\r\n"
    "\x1b[38;2;1;2;3;48;5;7mcolours\x1b[m\x1b[2mfaint\x1b[22m\x1b[7m \x1b[27m\r\n"
    "\x1b]0;a title é\x07\x1b]7501;state=idle:app=x\x1b\\\x1b]9;note\x07\x1b]777;notify;a;b\x1b\\"
    "\x1bP+q544e\x1b\\\x1b_Gi=1;AAAA\x1b\\\x1b]8;;http://example.org\x1b\\link\x1b]8;;\x1b\\\r\n"
    "\x1b[?2004h\x1b[>1u\x1b[?25l\x1b[3;9r\x1b[9;1H\n\n\x1b[r\x1b[5;5Hx\x1b[2K\x1b[1;1H\x1b[L\x1b(0qq\x1b(B"
    "\x1b[?1049h\x1b[2;2Hother\x1b[?1049l\x1b[4:3mcurly\x1b[0m" + "\r\nline" * 12
).encode()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def fed(kind: str, data: str | bytes, rows: int = 10, cols: int = 40) -> Emulator:
    emulator = make_emulator(rows, cols, prefer=kind)
    emulator.feed(data.encode() if isinstance(data, str) else data)
    return emulator


def texts(emulator: Emulator) -> list[str]:
    return [row.text for row in emulator.screen().rows]


def all_of(emulator: Emulator) -> tuple[Any, ...]:
    return emulator.screen(), emulator.history(), emulator.drain_osc()


def test_each_kind_is_what_it_says() -> None:
    assert isinstance(make_emulator(24, 80, prefer="ghostty"), GhosttyEmulator)
    assert isinstance(make_emulator(24, 80, prefer="pyte"), PyteEmulator)


def test_without_the_native_library_the_fallback_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ghostty_emulator, "VERSION", "0.0.0")

    assert isinstance(make_emulator(24, 80), PyteEmulator)


def test_the_native_emulator_starts_without_the_package_that_is_slow_to_import() -> None:
    code = (
        "import sys; from csp.sidecar.emulator import make_emulator; e = make_emulator(24, 80);"
        "print(type(e).__name__, *sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    name, *modules = run.stdout.split()

    assert name == "GhosttyEmulator"
    assert not {"pyghostty", "cffi", "pycparser", "pyte", "asyncio"} & set(modules)


def test_the_layouts_are_those_of_the_package() -> None:
    import ctypes

    from pyghostty import ffi, lib  # type: ignore[import-untyped]  # it has no types

    same = {
        ghostty_emulator.Point: "GhosttyPoint",
        ghostty_emulator.GridRef: "GhosttyGridRef",
        ghostty_emulator.Selection: "GhosttySelection",
        ghostty_emulator.ScreenExtra: "GhosttyFormatterScreenExtra",
        ghostty_emulator.TerminalExtra: "GhosttyFormatterTerminalExtra",
        ghostty_emulator.FormatOptions: "GhosttyFormatterTerminalOptions",
        ghostty_emulator.ModeConfig: "GhosttyTerminalModeConfig",
    }
    for ours, theirs in same.items():
        assert ctypes.sizeof(ours) == ffi.sizeof(theirs), theirs
        assert ctypes.alignment(ours) == ffi.alignof(theirs), theirs
        offsets = {name: field.offset for name, field in ffi.typeof(theirs).fields}
        if ours is not ghostty_emulator.Point:  # whose last part is a union
            assert {name: getattr(ours, name).offset for name, *_ in ours._fields_} == offsets, theirs
    assert ghostty_emulator.Point.x.offset == ffi.offsetof("GhosttyPoint", "value", "coordinate", "x")
    assert ghostty_emulator.Point.y.offset == ffi.offsetof("GhosttyPoint", "value", "coordinate", "y")
    names = {name: value for name, value in vars(ghostty_emulator).items() if re.match(r"(OPT|DATA)_", name)}
    assert {name: getattr(lib, f"GHOSTTY_TERMINAL_{name}") for name in names} == names
    assert lib.GHOSTTY_FORMATTER_FORMAT_VT == ghostty_emulator.FORMAT_VT
    assert lib.GHOSTTY_POINT_TAG_SCREEN == ghostty_emulator.POINT_SCREEN
    assert lib.GHOSTTY_OUT_OF_SPACE == -3


def test_text_has_its_attributes(kind: str) -> None:
    data = (
        "\x1b[1mbold\x1b[0m \x1b[2mfaint\x1b[22m\x1b[3mitalic\x1b[23m\x1b[4mline\x1b[24m\x1b[7m \x1b[27m\r\n"
        "\x1b[38;5;246mgrey\x1b[0m\x1b[48;2;95;95;95m on \x1b[38;2;175;175;175mgrey\x1b[0m"
        "\x1b[91mhigh\x1b[39;42mlow"
    )
    rows = fed(kind, data).screen().rows

    assert rows[0].runs == (
        RunView("bold", StyleView(bold=True)),
        RunView(" "),
        RunView("faint", StyleView(faint=True)),
        RunView("italic", StyleView(italic=True)),
        RunView("line", StyleView(underline=True)),
        RunView(" ", StyleView(reverse=True)),
    )
    assert rows[1].runs == (
        RunView("grey", StyleView(fg="246")),
        RunView(" on ", StyleView(bg="#5f5f5f")),
        RunView("grey", StyleView(fg="#afafaf", bg="#5f5f5f")),
        RunView("high", StyleView(fg="9")),
        RunView("low", StyleView(bg="2")),
    )


def test_a_character_of_several_parts_takes_the_cells_it_is_drawn_in(kind: str) -> None:
    widths = {}
    for text in ("👨‍👩‍👧", "👍🏽", "🇨🇭", "❤️", "1️⃣", "日", "e\u0301", "한", "⚡", "✅", "❯"):
        emulator = fed(kind, text)
        widths[text] = emulator.screen().cursor_col

        assert texts(emulator)[0] == text

    assert widths == {
        "👨‍👩‍👧": 2, "👍🏽": 2, "🇨🇭": 2, "❤️": 2, "1️⃣": 2,
        "日": 2, "e\u0301": 1, "한": 2, "⚡": 2, "✅": 2, "❯": 1,
    }  # fmt: skip


def test_clusters_stay_whole_after_a_reset(kind: str) -> None:
    for reset in ("\x1bc", "\x1b[!p"):
        emulator = fed(kind, f"x{reset}\x1b[2J\x1b[H👨‍👩‍👧|")

        assert texts(emulator)[0] == "👨‍👩‍👧|"
        assert emulator.screen().cursor_col == 3


def test_what_a_program_has_set_is_told(kind: str) -> None:
    plain = fed(kind, "x").screen()
    screen = fed(kind, "\x1b[?2004h\x1b[?25l\x1b[>5u\x1b]2;a title\x07y").screen()

    assert (plain.bracketed_paste, plain.cursor_visible, plain.title) == (False, True, "")
    assert (screen.bracketed_paste, screen.cursor_visible) == (True, False)
    assert screen.title == "a title"
    assert not fed(kind, "\x1b[?2004h\x1b[?2004l").screen().bracketed_paste


def test_the_other_screen_leaves_the_first_as_it_was(kind: str) -> None:
    emulator = fed(kind, "first\x1b[?1049h\x1b[2J\x1b[3;3Hother")

    assert emulator.screen().alternate
    assert texts(emulator)[:3] == ["", "", "  other"]

    emulator.feed(b"\x1b[?1049l!")

    assert not emulator.screen().alternate
    assert texts(emulator)[:3] == ["first!", "", ""]


def test_the_counter_grows_with_every_change(kind: str) -> None:
    emulator = make_emulator(10, 40, prefer=kind)
    seen = [emulator.dirty]
    emulator.feed(b"x")
    seen.append(emulator.dirty)
    emulator.resize(12, 40)
    seen.append(emulator.dirty)
    emulator.feed(b"\x1b[H")
    seen.append(emulator.dirty)
    emulator.feed(b"")

    assert seen == sorted(set(seen))
    assert emulator.dirty == seen[-1]


def test_history_can_be_had_with_wrapped_lines_whole(kind: str) -> None:
    command = "@send.codex " + "word " * 30 + "end"
    emulator = fed(kind, f"before\r\n{command}\r\nafter")

    assert emulator.history(unwrap=True) == ["before", command, "after"]
    assert len(emulator.history()) == 2 + -(-len(command) // 40)


def test_history_is_bounded(kind: str) -> None:
    emulator = make_emulator(10, 40, prefer=kind, history_lines=50)
    for number in range(5000):
        emulator.feed(f"line {number}\r\n".encode())
    history = emulator.history()

    assert len(history) <= 61
    assert len(history) >= 11
    assert [line for line in history if line][-1] == "line 4999"


def test_a_long_answer_is_kept_at_any_width(kind: str) -> None:
    emulator = make_emulator(40, 200, prefer=kind)
    for number in range(1500):
        emulator.feed(f"\x1b[38;5;{number % 256}m{number}\x1b[0m {'x' * 150}\r\n".encode())

    assert sum(bool(line) for line in emulator.history()) == 1500


def test_a_flood_does_not_grow_the_memory() -> None:
    code = """
import resource, sys
from csp.sidecar.emulator import make_emulator
e = make_emulator(50, 200)
def flood(count):
    for n in range(count):
        e.feed(b"".join(b"\\x1b[38;5;%dm%d %s\\x1b[0m\\r\\n" % (i % 256, i, b"x" * 150) for i in range(1000)))
taken = [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]
for count in (40, 200):
    flood(count)
    taken.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(taken[1] - taken[0], taken[2] - taken[1])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    first, more = (int(part) for part in run.stdout.split())

    assert first < 8192  # KB, for 2,000 lines of 200 cells
    assert more < 2048


@pytest.mark.parametrize(
    ("rows", "cols"), [(1, 1), (2, 3), (5, 20), (4, 19), (500, 500), (65535, 65535), (0, 0)]
)
def test_any_size_is_survived(kind: str, rows: int, cols: int) -> None:
    emulator = make_emulator(rows, cols, prefer=kind)
    emulator.feed(SAMPLE)
    emulator.resize(24, 80)
    emulator.feed(b"\x1b[2J\x1b[Hhere")
    emulator.resize(rows, cols)

    assert emulator.screen().cols == cols
    assert emulator.history()


def test_a_program_does_not_change_the_size(kind: str) -> None:
    emulator = fed(kind, b"\x1b[?40h\x1b[?3h\x1b[8;3;3t" + b"x" * 100)

    assert len(emulator.screen().rows) == 10
    assert max(len(line) for line in emulator.history()) == 40


def test_text_survives_a_resize(kind: str) -> None:
    emulator = fed(kind, "\r\n".join(f"row {number}" for number in range(9)))
    for size in ((5, 40), (5, 30), (20, 60)):
        emulator.resize(*size)

        assert [line for line in emulator.history() if line] == [f"row {number}" for number in range(9)]
        assert len(emulator.screen().rows) == size[0]

    emulator.feed(b"!")

    assert "row 8!" in texts(emulator)


def test_a_split_anywhere_gives_the_same(kind: str) -> None:
    expected = all_of(fed(kind, SAMPLE))
    differing = []
    for place in range(1, len(SAMPLE)):
        emulator = fed(kind, SAMPLE[:place])
        emulator.feed(SAMPLE[place:])
        if all_of(emulator) != expected:
            differing.append(place)

    assert differing == []


def test_strings_for_the_terminal_are_not_shown(kind: str) -> None:
    data = (
        b"a\x1bPq#0;2;0~\x1b\\b\x1b_Gi=1;QUFB\x1b\\c\x1b^pm\x1b\\d\x1bXsos\x1b\\e"
        b"\x1b]52;c;QQ==\x07f\x1b]0;t\x1b\\g"
    )

    assert texts(fed(kind, data))[0] == "abcdefg"


def test_sequences_that_are_not_known_change_nothing(kind: str) -> None:
    data = (
        b"a\x1b[>4;2mb\x1b[?2026hc\x1b[?2026ld\x1b[>qe\x1b[?2026$pf\x1b[?ug\x1b[=0;1uh\x1b[2 qi"
        b"\x1b[>0cj\x1b[?1;2ck"
        b"\x1b[1;2;3;4;5;6yl\x1b%Gm\x1b=n\x1b>o"
    )
    screen = fed(kind, data).screen()

    assert screen.rows[0].runs == (RunView("abcdefghijklmno"),)


def test_random_bytes_are_survived(kind: str) -> None:
    chance = random.Random(20260)
    parts = [
        b"\x1b[",
        b"\x1b]",
        b"\x1bP",
        b"\x1b",
        b";",
        b"?",
        b">",
        b"$",
        b" ",
        b"1",
        b"99999",
        b"m",
        b"H",
        b"r",
    ]
    parts += [
        b"J",
        b"K",
        b"L",
        b"M",
        b"h",
        b"l",
        b"S",
        b"T",
        b"b",
        b"I",
        b"Z",
        b"\x07",
        b"\x18",
        b"\r\n",
        b"\t",
    ]
    parts += [
        "日".encode(),
        "👨‍👩‍👧".encode(),
        "\u0301".encode(),
        b"\xff",
        b"\xc3",
        b"text",
        b"\x1b[?1049h",
        b"\x1bc",
    ]
    for _ in range(300 if kind == "ghostty" else 60):
        emulator = make_emulator(chance.randint(1, 30), chance.randint(1, 100), prefer=kind)
        for _ in range(chance.randint(1, 8)):
            emulator.feed(b"".join(chance.choices(parts, k=chance.randint(1, 60))))
            emulator.feed(chance.randbytes(chance.randint(0, 60)))
            if chance.random() < 0.3:
                emulator.resize(chance.randint(1, 30), chance.randint(1, 100))
        screen = emulator.screen()

        assert 0 <= screen.cursor_row < len(screen.rows)
        assert emulator.history()
        assert isinstance(emulator.drain_osc(), list)


def test_a_picture_does_not_make_us_read_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "picture"
    pipe.write_bytes(b"\0" * 400)
    name = base64.b64encode(str(pipe).encode())
    emulator = fed("ghostty", b"\x1b_Ga=T,f=32,s=10,v=10,t=t;" + name + b"\x1b\\done")

    assert pipe.exists()  # a picture in a temporary file is removed by who takes it
    assert texts(emulator)[0] == "done"


def test_commands_are_handed_over_once_in_order(kind: str) -> None:
    emulator = fed(
        kind,
        "\x1b]0;one\x07\x1b]7501;state=working\x1b\\\x1b]9;hello; you\x07"
        "\x1b]777;notify;t;b\x07\x1b]2;two\x07",
    )

    assert emulator.drain_osc() == [
        (0, "one"), (7501, "state=working"), (9, "hello; you"), (777, "notify;t;b"), (2, "two")
    ]  # fmt: skip
    assert emulator.drain_osc() == []
    assert emulator.screen().title == "two"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x1b]0;cut\x18text", []),
        (b"\x1b]0;by an escape\x1b[31m", [(0, "by an escape")]),
        (b"\x1b]0;one\x1b]0;two\x07", [(0, "one"), (0, "two")]),
        (b"\x1b]112\x07", [(112, "")]),
        (b"\x1b]no number\x07\x1b];\x07", []),
        (b"\x1b]0;" + b"x" * MAX_BYTES + b"\x07\x1b]0;next\x07", [(0, "next")]),
        (b"\x1b]0;\xff\x07", [(0, "\ufffd")]),
        (b"no command \x1b[31m", []),
    ],
)
def test_commands_are_read_from_any_pieces(data: bytes, expected: list[tuple[int, str]]) -> None:
    for size in (1, 3, 1000, 10_000):
        reader = OscReader()
        for place in range(0, len(data), size):
            reader.feed(data[place : place + size])

        assert reader.drain() == expected


def test_commands_nobody_takes_do_not_pile_up() -> None:
    reader = OscReader()
    for number in range(5000):
        reader.feed(b"\x1b]0;%d\x07" % number)

    assert len(reader.drain()) == 1000
    assert reader.title == "4999"
