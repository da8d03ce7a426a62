"""A dict that reads through to another one and keeps its own changes.

A draft of a room needs to change tables of ten thousand entries without copying them for each command.
"""

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Any, Final, NoReturn, TypeVar

K = TypeVar("K")
V = TypeVar("V")
#: A table with no more entries is copied sooner than read through.
SMALL: Final = 64


def layered(base: dict[K, V]) -> dict[K, V]:
    """Return a table with the entries of `base` that can be changed by itself."""
    return dict(base) if len(base) <= SMALL else LayeredDict(base)


def merged(table: dict[K, V]) -> dict[K, V]:
    """Return a table made by `layered` as a plain one; what it was made from is used up."""
    return table.merge() if isinstance(table, LayeredDict) else table


class LayeredDict(dict[K, V]):
    """The entries of `base` with changes on top; `base` itself is never changed.

    The dict's own storage holds what was set here. The order is that of a plain dict.
    """

    __slots__ = ("_base", "_hidden")

    def __init__(self, base: dict[K, V]) -> None:
        super().__init__()
        self._base = base
        #: Keys of `base` that were removed here; one that is set again comes last.
        self._hidden: set[K] = set()

    def merge(self) -> dict[K, V]:
        """Make the changes in `base` itself and return it."""
        for key in self._hidden:
            del self._base[key]
        for key in dict.__iter__(self):
            self._base[key] = dict.__getitem__(self, key)
        return self._base

    def __missing__(self, key: K) -> V:
        if key in self._hidden:
            raise KeyError(key)
        return self._base[key]

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or (key not in self._hidden and key in self._base)

    def get(self, key: K, default: Any = None) -> Any:
        if dict.__contains__(self, key):
            return dict.__getitem__(self, key)
        return default if key in self._hidden else self._base.get(key, default)

    def __delitem__(self, key: K) -> None:
        if key not in self:
            raise KeyError(key)
        dict.pop(self, key, None)
        if key in self._base:
            self._hidden.add(key)

    def pop(self, key: K, *default: Any) -> Any:
        if default and key not in self:
            return default[0]
        value = self[key]
        del self[key]
        return value

    def __iter__(self) -> Iterator[K]:
        yield from (key for key in self._base if key not in self._hidden)
        yield from (key for key in dict.__iter__(self) if self._is_last(key))

    def __reversed__(self) -> Iterator[K]:
        yield from (key for key in dict.__reversed__(self) if self._is_last(key))
        yield from (key for key in reversed(self._base) if key not in self._hidden)

    def __len__(self) -> int:
        last = sum(map(self._is_last, dict.__iter__(self)))
        return len(self._base) - len(self._hidden) + last

    def _is_last(self, key: K) -> bool:
        """Tell whether a key that was set here comes after those of `base`."""
        return key in self._hidden or key not in self._base

    def keys(self) -> Any:
        return KeysView(self)

    def values(self) -> Any:
        return ValuesView(self)

    def items(self) -> Any:
        return ItemsView(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and dict(self.items()) == dict(other.items())

    __hash__ = None

    def __repr__(self) -> str:
        return repr(dict(self.items()))

    def _unsupported(self, *_: object, **__: object) -> NoReturn:
        raise NotImplementedError("a layered dict has no such method")

    # These would see the own storage alone.
    setdefault = popitem = clear = copy = __or__ = __ror__ = __ior__ = _unsupported
