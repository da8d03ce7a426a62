"""A terminal in which lines scroll by above a few rows that stay."""

import io
from unittest.mock import Mock

from prompt_toolkit.data_structures import Size

from csp.pane_output import PaneOutput


class Stdout(io.StringIO):
    """Keeps what each flush has written."""

    encoding = "utf-8"

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[str] = []

    def fileno(self) -> int:
        raise OSError

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        if self.getvalue():
            self.writes.append(self.getvalue())
            self.seek(0)
            self.truncate()


def made(stdout: Stdout, *, has_colour: bool = True) -> PaneOutput:
    return PaneOutput(stdout, lambda: Size(24, 80), "xterm", has_colour=has_colour)


def test_lines_and_what_is_drawn_below_them_arrive_in_one_write() -> None:
    stdout = Stdout()
    output, app = made(stdout), Mock()

    def draw(text: str) -> None:
        output.write_raw(text)
        output.flush()

    app.renderer.erase.side_effect = lambda: draw("<erased>")
    app._redraw.side_effect = lambda: output.write_raw("<drawn>")
    output.write_above(app, "one\ntwo\n")

    assert stdout.writes == ["<erased>one\r\ntwo\r\n<drawn>"]
    assert not output.is_held


def test_a_paste_may_begin_while_lines_are_written() -> None:
    stdout = Stdout()
    output, app = made(stdout), Mock()
    app.renderer.erase.side_effect = output.disable_bracketed_paste
    output.write_above(app, "one\n")
    between = list(stdout.writes)
    output.disable_bracketed_paste()
    output.flush()

    assert between == ["one\r\n"]
    assert stdout.writes == ["one\r\n", "\x1b[?2004l"]


def test_the_first_row_is_not_erased_as_a_whole_screen() -> None:
    stdout = Stdout()
    output = made(stdout)
    output.erase_down()
    output.flush()

    assert stdout.writes == ["\x1b[K \x1b[J\b"]


def test_without_colours_there_is_one_bit_of_them() -> None:
    assert made(Stdout(), has_colour=False).get_default_color_depth().name == "DEPTH_1_BIT"
    assert made(Stdout()).get_default_color_depth().name != "DEPTH_1_BIT"


def test_the_terminal_is_never_asked_where_its_cursor_is() -> None:
    assert not made(Stdout()).responds_to_cpr
