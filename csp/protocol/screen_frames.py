"""Terminal screens, as sent to watchers."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from csp.protocol.enums import Struct, Text

MAX_LIVE_BYTES: Final = 512 * 1024
_Cells = Annotated[int, Meta(ge=0, le=10_000)]


class StyleView(Struct, frozen=True):
    """The style of text; a colour is a palette index ("246"), an RGB value ("#afafaf"), or omitted."""

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
    """A screen; `cursor` is its row and column, omitted while it is hidden."""

    rows: Annotated[tuple[tuple[RunView, ...], ...], Meta(max_length=1000)]
    cols: _Cells
    cursor: tuple[_Cells, _Cells] | None = None
    title: Annotated[str, Meta(max_length=1000)] = ""
    alternate: bool = False


class LiveBody(Struct, frozen=True):
    """A live frame: a screen, or text that is being written."""

    screen: ScreenView | None = None
    text: Text | None = None


class LiveView(Struct, frozen=True):
    """The content of a live frame.

    To an agent: whether anybody is watching its screen; after each `true` it sends the whole screen, then
    only changes. To watchers: the agent whose screen or text it is.
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
