"""Find what serves a path: a dictionary for plain paths, patterns for the others."""

from typing import Generic, TypeVar

from csp.errors import NotFound

T = TypeVar("T")


class RouteTable(Generic[T]):
    """Targets by path and method; a path such as `/agents/{id}` is a pattern."""

    def __init__(self) -> None:
        self._plain: dict[str, dict[str, T]] = {}
        self._patterns: dict[tuple[str, ...], dict[str, T]] = {}

    def add(self, method: str, path: str, target: T) -> None:
        """Add a target; of two patterns that fit a path, the one added first gets it."""
        if "{" in path:
            self._patterns.setdefault(tuple(path.split("/")), {})[method] = target
        else:
            self._plain.setdefault(path, {})[method] = target

    def find(self, path: str) -> tuple[dict[str, T], dict[str, str]]:
        """Return the targets of a path by method and the values in the path, or raise NotFound."""
        targets = self._plain.get(path)
        if targets is not None:
            return targets, {}
        words = path.split("/")
        for parts, targets in self._patterns.items():
            if len(parts) != len(words):
                continue
            pairs = list(zip(parts, words, strict=True))
            if all(part == word or part.startswith("{") for part, word in pairs):
                return targets, {part[1:-1]: word for part, word in pairs if part.startswith("{")}
        raise NotFound(f"no route {path!r}", "see /openapi.json")
