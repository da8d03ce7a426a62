"""An event loop that serves people before agents.

asyncio handles everything that is ready in one pass, so a pass gets as long as there are busy agents. Here
the sockets of agents are in a selector of their own, and a pass takes only a few of them.
"""

import asyncio
import selectors
from collections import ChainMap
from collections.abc import Mapping
from typing import Any, Final
from weakref import WeakKeyDictionary

from csp.room.admission import Lane, in_turn

#: How many sockets of a lane are served in one pass; people have no limit.
SERVED: Final = {Lane.STRANGERS: 32, Lane.AGENTS: 16}

Ready = list[tuple[selectors.SelectorKey, int]]
FileObject = Any


class LaneSelector(selectors.BaseSelector):
    """A selector with lanes; a socket is in the lane of people until it is moved."""

    def __init__(self) -> None:
        self._lanes = {lane: selectors.DefaultSelector() for lane in Lane}
        self._first = self._lanes[Lane.PEOPLE]
        self._lane_of: dict[int, Lane] = {}
        self._last = dict.fromkeys(SERVED, -1)
        #: Whether callers wait to be accepted, so that agents have to wait for one pass.
        self.is_crowded = False
        for lane in SERVED:
            # A selector is ready when one of its sockets is.
            self._first.register(self._lanes[lane].fileno(), selectors.EVENT_READ, lane)

    def put(self, fd: int, lane: Lane) -> None:
        """Serve a descriptor in this lane from now on."""
        before = self._lane_of.get(fd, Lane.PEOPLE)
        if before is lane:
            return
        self._lane_of[fd] = lane
        key = self._lanes[before].get_map().get(fd)
        if key is not None:
            self._lanes[before].unregister(fd)
            self._lanes[lane].register(key.fileobj, key.events, key.data)

    def forget(self, fd: int) -> None:
        """Reset the lane of a descriptor for its next owner."""
        self.put(fd, Lane.PEOPLE)
        self._lane_of.pop(fd, None)

    def register(self, fileobj: FileObject, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._selector_of(fileobj).register(fileobj, events, data)

    def unregister(self, fileobj: FileObject) -> selectors.SelectorKey:
        return self._selector_of(fileobj).unregister(fileobj)

    def modify(self, fileobj: FileObject, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._selector_of(fileobj).modify(fileobj, events, data)

    def get_key(self, fileobj: FileObject) -> selectors.SelectorKey:
        return self._selector_of(fileobj).get_key(fileobj)

    def get_map(self) -> Mapping[FileObject, selectors.SelectorKey]:
        return ChainMap(*[dict(selector.get_map()) for selector in self._lanes.values()])

    def select(self, timeout: float | None = None) -> Ready:
        found = self._first.select(timeout)
        ready = [one for one in found if not isinstance(one[0].data, Lane)]
        if len(ready) < len(found):
            lanes = {key.data for key, _ in found if isinstance(key.data, Lane)}
            for lane in SERVED:
                if lane in lanes and not (self.is_crowded and lane is Lane.AGENTS):
                    ready += self._some_of(lane)
        self.is_crowded = False
        return ready

    def _some_of(self, lane: Lane) -> Ready:
        found = self._lanes[lane].select(0)
        if len(found) <= SERVED[lane]:
            return found
        by_fd = {one[0].fd: one for one in found}
        chosen = in_turn(list(by_fd), self._last[lane], SERVED[lane])
        self._last[lane] = chosen[-1]
        return [by_fd[fd] for fd in chosen]

    def close(self) -> None:
        for selector in self._lanes.values():
            selector.close()

    def _selector_of(self, fileobj: FileObject) -> selectors.BaseSelector:
        fd = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        return self._lanes[self._lane_of.get(fd, Lane.PEOPLE)]


_SELECTORS: WeakKeyDictionary[asyncio.AbstractEventLoop, LaneSelector] = WeakKeyDictionary()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """Return a loop with lanes, where the system has selectors that can be selected themselves."""
    if not hasattr(selectors.DefaultSelector, "fileno"):
        return asyncio.new_event_loop()
    selector = LaneSelector()
    loop = asyncio.SelectorEventLoop(selector)
    _SELECTORS[loop] = selector
    return loop


def lanes_of(loop: asyncio.AbstractEventLoop) -> LaneSelector | None:
    """Return the lanes of a loop that was made here."""
    return _SELECTORS.get(loop)
