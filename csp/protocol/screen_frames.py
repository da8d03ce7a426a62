"""What a terminal shows, on its way to those who watch it."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from csp.protocol.enums import Struct, Text

MAX_LIVE_BYTES: Final = 512 * 1024
_Cells = Annotated[int, Meta(ge=0, le=10_000)]


class StyleView(Struct, frozen=True):
    """How text is drawn; a colour is a palette index ("246"), an RGB value ("#afafaf"), or left out."""

    fg: Annotated[str, Meta(max_length=16)] | None = None
    bg: Annotated[str, Meta(max_length=16)] | None = None
    bold: bool = False
    faint: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False


PLAIN: Final = StyleView()


class RunView(msgspec.Struct, frozen=True, array_like=True):
    """Text of one style, as `["text", {"bold": true}]` or `["text"]`."""

    text: str
    style: StyleView = PLAIN


class ScreenView(Struct, frozen=True):
    """One moment of a terminal; `cursor` is its row, its column, left out while it is hidden."""

    rows: Annotated[tuple[tuple[RunView, ...], ...], Meta(max_length=1000)]
    cols: _Cells
    cursor: tuple[_Cells, _Cells] | None = None
    title: Annotated[str, Meta(max_length=1000)] = ""
    alternate: bool = False


class LiveBody(Struct, frozen=True):
    """What matters only now: the screen, or a piece of text as it is being written."""

    screen: ScreenView | None = None
    text: Text | None = None


class LiveView(Struct, frozen=True):
    """What a live frame holds.

    To an agent: whether anybody watches its screen; with each `true` it shows all of it at once, then goes on
    with what changes. To those who watch: whose screen or text it is.
    """

    watch: bool | None = None
    agent: str | None = None
    screen: ScreenView | None = None
    text: str | None = None


class LiveFrame(Struct, frozen=True):
    live: LiveView


class ScreenAnswer(Struct, frozen=True, omit_defaults=False):
    agent: str
    screen: ScreenView
