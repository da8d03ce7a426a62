"""Draw a recording of a terminal as an animated SVG.

The recording is an asciicast (version 2), as asciinema writes it. Each different row is drawn once; a frame
refers to its rows, and the frames are shown in turn by CSS alone, so the picture moves in any viewer that
shows SVG, without a script.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

from csp.protocol.screen_frames import StyleView
from csp.sidecar.emulator import make_emulator
from csp.terminal.screen import Screen, ScreenRow

CELL_WIDTH: Final = 8.4
CELL_HEIGHT: Final = 18
FONT_SIZE: Final = 14
PADDING: Final = 12
#: Frames nearer to each other than this are one.
FRAME_S: Final = 0.12
#: Nothing is looked at for longer than this.
LONGEST_S: Final = 3.0
#: How long the last frame stands before the picture begins again.
REST_S: Final = 4.0

BACKGROUND: Final = "#16181d"
FOREGROUND: Final = "#d7dae0"
_ANSI: Final = (
    *("#2b2f38", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#abb2bf"),
    *("#5c6370", "#ff7a85", "#b5e890", "#ffd68a", "#7cc5ff", "#dd8df5", "#6fd3df", "#ffffff"),
)
_CUBE: Final = (0, 95, 135, 175, 215, 255)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """A recording: its size, and what was written when, in seconds from its start."""

    rows: int
    cols: int
    chunks: tuple[tuple[float, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What the terminal shows from a moment on."""

    at: float
    screen: Screen


def read_cast(path: Path) -> Cast:
    head, *lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    chunks = tuple((at, text.encode()) for at, kind, text in lines if kind == "o")
    return Cast(rows=head["height"], cols=head["width"], chunks=chunks)


def write_cast(path: Path, cast: Cast) -> None:
    head = {"version": 2, "width": cast.cols, "height": cast.rows}
    lines = [json.dumps(head)]
    lines += [json.dumps([round(at, 3), "o", data.decode("utf-8", "replace")]) for at, data in cast.chunks]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def frames_of(cast: Cast) -> list[Frame]:
    """Return the frames in which something has changed, none longer than it is worth."""
    emulator = make_emulator(cast.rows, cast.cols)
    frames: list[Frame] = []
    clock = due = last = 0.0
    for at, data in cast.chunks:
        if at >= due and last:
            clock += min(at - last, LONGEST_S)
            frames += _changed(frames, Frame(at=clock, screen=emulator.screen()))
            due = at + FRAME_S
            last = at
        last = last or at
        emulator.feed(data)
    return [*frames, Frame(at=clock + FRAME_S, screen=emulator.screen())]


def _changed(frames: Sequence[Frame], frame: Frame) -> list[Frame]:
    return [] if frames and frames[-1].screen.rows == frame.screen.rows else [frame]


def render(cast: Cast) -> str:
    """Return the SVG."""
    frames = frames_of(cast)
    width = round(cast.cols * CELL_WIDTH + 2 * PADDING)
    height = cast.rows * CELL_HEIGHT + 2 * PADDING
    names: dict[ScreenRow, str] = {}
    film = [_frame(frame, names, index * width) for index, frame in enumerate(frames)]
    rows = [f'<g id="{name}">{"".join(_row(row))}</g>' for row, name in names.items()]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="ui-monospace,Menlo,Consolas,monospace" '
            f'font-size="{FONT_SIZE}">',
            f"<style>text{{white-space:pre;fill:{FOREGROUND}}}{_motion(frames, width)}</style>",
            f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
            f"<defs>{''.join(rows)}</defs>",
            f'<svg x="{PADDING}" y="{PADDING}" width="{width}" height="{height}"><g class="film">',
            *film,
            "</g></svg></svg>",
        ]
    )


def _motion(frames: Sequence[Frame], width: int) -> str:
    total = frames[-1].at + REST_S
    steps = [
        f"{100 * frame.at / total:.3f}%{{transform:translateX({-index * width}px)}}"
        for index, frame in enumerate(frames)
    ]
    keyframes = f"@keyframes film{{0%{{transform:none}}{''.join(steps)}}}"
    return f".film{{animation:film {total:.2f}s step-end infinite}}{keyframes}"


def _frame(frame: Frame, names: dict[ScreenRow, str], x: int) -> str:
    uses = []
    for index, row in enumerate(frame.screen.rows):
        if row.text or any(run.style.bg or run.style.reverse for run in row.runs):
            name = names.setdefault(row, f"r{len(names)}")
            uses.append(f'<use href="#{name}" y="{index * CELL_HEIGHT}"/>')
    return f'<g transform="translate({x})">{"".join(uses)}{_cursor(frame.screen)}</g>'


def _cursor(screen: Screen) -> str:
    if not screen.cursor_visible:
        return ""
    x, y = screen.cursor_col * CELL_WIDTH, screen.cursor_row * CELL_HEIGHT
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{CELL_WIDTH}" height="{CELL_HEIGHT}" fill="#fff" opacity=".45"/>'
    )


def _row(row: ScreenRow) -> Iterator[str]:
    column = 0
    for run in row.runs:
        cells = sum(_cells(char) for char in run.text)
        x, width = column * CELL_WIDTH, cells * CELL_WIDTH
        fg, bg = _colours(run.style)
        if bg:
            yield f'<rect x="{x:.1f}" width="{width:.1f}" height="{CELL_HEIGHT}" fill="{bg}"/>'
        if run.text.strip():
            looks = f' fill="{fg}"' if fg else ""
            looks += ' font-weight="bold"' if run.style.bold else ""
            looks += ' font-style="italic"' if run.style.italic else ""
            looks += ' opacity=".6"' if run.style.faint else ""
            # A fixed length keeps columns in line in whatever font the viewer has.
            yield (
                f'<text x="{x:.1f}" y="{CELL_HEIGHT - 4}" textLength="{width:.1f}"'
                f'{looks} style="fill:{fg or FOREGROUND}">{escape(run.text)}</text>'
            )
        column += cells


def _cells(char: str) -> int:
    from unicodedata import combining, east_asian_width

    return 0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1


def _colours(style: StyleView) -> tuple[str, str]:
    fg, bg = _colour(style.fg), _colour(style.bg)
    return (bg or BACKGROUND, fg or FOREGROUND) if style.reverse else (fg, bg)


def _colour(name: str | None) -> str:
    if not name or name.startswith("#"):
        return name or ""
    number = int(name)
    if number < len(_ANSI):
        return _ANSI[number]
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return f"#{grey:02x}{grey:02x}{grey:02x}"
    red, green, blue = (_CUBE[(number - 16) // step % 6] for step in (36, 6, 1))
    return f"#{red:02x}{green:02x}{blue:02x}"
