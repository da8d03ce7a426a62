"""Find notes by what they mean: a static vector for each note, the whole model for the best hits."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from csp.errors import Broken
from csp.journal.rebuildable_files import VECTORS_NAME
from csp.whiteboard.minilm import DIMENSIONS, Array, MiniLM
from csp.whiteboard.minilm_weights import find_files, load
from csp.whiteboard.note_index import Entry, NoteIndex
from csp.whiteboard.vector_file import Vectors

log = logging.getLogger(__name__)

#: Beyond this share of all rows it is quicker to compute all of them.
_MOST_PICKED: Final = 0.3
#: How many texts that the whole model has read are remembered, about 1.5 KB each.
_REMEMBERED: Final = 4096
_loading: Final = threading.Lock()


def load_model() -> MiniLM | None:
    """Return the model, None where the extra is not installed or its files are not what they should be."""
    with _loading:
        return _load_model()


@lru_cache(maxsize=1)
def _load_model() -> MiniLM | None:
    files = find_files()
    if files is None:
        return None
    try:
        return MiniLM(load(files))
    except Broken as exc:
        log.warning("search by meaning is off", extra={"problem": exc.message})
        return None


class Meanings:
    """The meanings of the notes of one room; `read` may be called beside the rest."""

    def __init__(self, folder: Path, model: MiniLM) -> None:
        self._model = model
        self._vectors = Vectors(folder / VECTORS_NAME, DIMENSIONS)
        self._known: OrderedDict[str, Array] = OrderedDict()
        self._reading = threading.Lock()

    def missing(self, index: NoteIndex) -> int:
        """Return how many notes have no vector yet."""
        self._vectors.attach(index.stamp, index.count)
        return index.count - self._vectors.count

    def take(self, index: NoteIndex, text_of: Callable[[Entry], str], most: int) -> None:
        """Make the vectors of the next notes."""
        self._vectors.attach(index.stamp, index.count)
        entries = index.from_row(self._vectors.count, most)
        if entries:
            self._vectors.append(np.stack([self._model.static(text_of(entry)) for entry in entries]))

    def nearest(self, q: str, rows: Sequence[int] | None, count: int) -> dict[int, float]:
        """Return the rows that mean most nearly what is asked, the best first; of `rows` alone, if given."""
        vectors, asked = self._vectors.rows, self._model.static(q)
        if rows is None:
            return _best(np.arange(len(vectors)), vectors @ asked, count)
        picked = np.array([row for row in rows if row < len(vectors)], np.int64)
        if len(picked) > _MOST_PICKED * len(vectors):
            return _best(picked, (vectors @ asked)[picked], count)
        return _best(picked, vectors[picked] @ asked, count)

    def among(self, q: str, rows: Sequence[int]) -> dict[int, float]:
        """Return how nearly each of these rows means what is asked."""
        return self.nearest(q, rows, len(rows))

    def read(self, q: str, texts: Sequence[str]) -> list[float]:
        """Return how nearly each text means what is asked, as the whole model reads them."""
        with self._reading:
            wanted = [text for text in dict.fromkeys([q, *texts]) if text not in self._known]
            if wanted:
                self._known.update(zip(wanted, self._model.read(wanted), strict=True))
            asked = self._known[q]
            found = [float(self._known[text] @ asked) for text in texts]
            while len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return found

    def close(self) -> None:
        """Let go of the file."""
        self._vectors.close()


def _best(rows: "np.ndarray[tuple[int], np.dtype[np.int64]]", scores: Array, count: int) -> dict[int, float]:
    if count < len(scores):
        kept = np.argpartition(-scores, count)[:count]
        rows, scores = rows[kept], scores[kept]
    order = np.argsort(-scores, kind="stable")
    return {int(rows[at]): float(scores[at]) for at in order}
