"""Find notes by meaning: one vector per note, and a closer comparison for the best hits."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from csp.journal.rebuildable_files import VECTORS_NAME
from csp.whiteboard.note_index import Entry, NoteIndex
from csp.whiteboard.vector_file import Vectors
from csp.whiteboard.word_vectors import DIMENSIONS, Array, WordVectors

#: Beyond this share of all rows it is quicker to compute all of them.
_MOST_PICKED: Final = 0.3


class Meanings:
    """The meanings of the notes of one room; `compare` may run beside the other methods."""

    def __init__(self, folder: Path, model: WordVectors) -> None:
        self._model = model
        self._vectors = Vectors(folder / VECTORS_NAME, DIMENSIONS)

    def missing(self, index: NoteIndex) -> int:
        """Return how many notes have no vector yet."""
        self._vectors.attach(index.stamp, index.count)
        return index.count - self._vectors.count

    def add(self, index: NoteIndex, text_of: Callable[[Entry], str], most: int) -> None:
        """Make the vectors of the next notes."""
        self._vectors.attach(index.stamp, index.count)
        entries = index.from_row(self._vectors.count, most)
        if entries:
            self._vectors.append(np.stack([self._model.embed(text_of(entry)) for entry in entries]))

    def nearest(self, q: str, rows: Sequence[int] | None, count: int) -> dict[int, float]:
        """Return the rows nearest to `q` in meaning, best first; only among `rows`, if given."""
        vectors, asked = self._vectors.rows, self._model.embed(q)
        if rows is None:
            return _best(np.arange(len(vectors)), vectors @ asked, count)
        picked = np.array([row for row in rows if row < len(vectors)], np.int64)
        if len(picked) > _MOST_PICKED * len(vectors):
            return _best(picked, (vectors @ asked)[picked], count)
        return _best(picked, vectors[picked] @ asked, count)

    def compare(self, q: str, texts: Sequence[str]) -> list[float]:
        """Return how near each text is to `q` in meaning, compared word by word."""
        return self._model.compare(q, texts)

    def close(self) -> None:
        """Close the file."""
        self._vectors.close()


def _best(rows: "np.ndarray[tuple[int], np.dtype[np.int64]]", scores: Array, count: int) -> dict[int, float]:
    if count < len(scores):
        kept = np.argpartition(-scores, count)[:count]
        rows, scores = rows[kept], scores[kept]
    order = np.argsort(-scores, kind="stable")
    return {int(rows[at]): float(scores[at]) for at in order}
