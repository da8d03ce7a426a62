"""Find notes by meaning, with one vector per note and a closer comparison of the best hits.

The note index stores the vectors. They are kept in memory for the search, at 1 KB per note.
"""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from csp.whiteboard.note_index import Entry, NoteIndex
from csp.whiteboard.word_vectors import DIMENSIONS, Array, WordVectors

#: Above this share of all rows, it is faster to compute all of them.
_MOST_PICKED: Final = 0.3


class Meanings:
    """The meanings of one room's notes; only `compare` may run concurrently with other methods."""

    def __init__(self, model: WordVectors) -> None:
        self._model = model
        self._rows: Array = np.empty((0, DIMENSIONS), np.float32)
        self._count = 0
        self._stamp = ""

    def missing(self, index: NoteIndex) -> int:
        """Return the number of notes without a vector."""
        if self._stamp != index.stamp:
            self._stamp, self._count = index.stamp, 0
            stored = b"".join(index.vectors())
            if len(stored) % (2 * DIMENSIONS):
                raise sqlite3.DatabaseError("a stored vector has the wrong size")
            vectors = np.frombuffer(stored, np.float16).reshape(-1, DIMENSIONS)
            self._append(np.nan_to_num(vectors, posinf=0, neginf=0))
        return index.count - self._count

    def add(self, index: NoteIndex, text_of: Callable[[Entry], str], most: int) -> None:
        """Compute the vectors of the next notes."""
        entries = index.from_row(self._count, most) if self.missing(index) else []
        if entries:
            vectors = np.stack([self._model.embed(text_of(entry)) for entry in entries]).astype(np.float16)
            index.add_vectors(self._count, [vector.tobytes() for vector in vectors])
            self._append(vectors)

    def nearest(self, q: str, rows: Sequence[int] | None, count: int) -> dict[int, float]:
        """Return the rows nearest to `q` in meaning, best first; search only `rows` if given."""
        vectors, asked = self._rows[: self._count], self._model.embed(q)
        if rows is None:
            return _best(np.arange(len(vectors)), vectors @ asked, count)
        picked = np.array([row for row in rows if row < len(vectors)], np.int64)
        if len(picked) > _MOST_PICKED * len(vectors):
            return _best(picked, (vectors @ asked)[picked], count)
        return _best(picked, vectors[picked] @ asked, count)

    def compare(self, q: str, texts: Sequence[str]) -> list[float]:
        """Return each text's similarity to `q` in meaning, compared word by word."""
        return self._model.compare(q, texts)

    def _append(self, vectors: NDArray[np.float16]) -> None:
        end = self._count + len(vectors)
        if end > len(self._rows):
            # Double the size, so that many small additions copy little.
            grown: Array = np.empty((max(end, 2 * len(self._rows)), DIMENSIONS), np.float32)
            grown[: self._count] = self._rows[: self._count]
            self._rows = grown
        self._rows[self._count : end] = vectors
        self._count = end


def _best(rows: NDArray[np.int64], scores: Array, count: int) -> dict[int, float]:
    if count < len(scores):
        kept = np.argpartition(-scores, count)[:count]
        rows, scores = rows[kept], scores[kept]
    order = np.argsort(-scores, kind="stable")
    return {int(rows[at]): float(scores[at]) for at in order}
