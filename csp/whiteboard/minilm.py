"""What texts mean, as vectors: a quick way for every note, the whole model for the best hits.

Static vectors are weighted means of the model's own word embeddings. Reading a text is the model itself, six
layers in plain numpy.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from csp.whiteboard.minilm_weights import Weights
from csp.whiteboard.note_index import COMMON_WORDS
from csp.whiteboard.wordpiece import WordPieces

Array = NDArray[np.float32]

DIMENSIONS: Final = 384
_HEADS: Final = 12
_LAYERS: Final = 6
_EPSILON: Final = 1e-12
#: How much of a text counts: what it says is mostly said at its beginning.
_STATIC_PIECES: Final = 512
_READ_PIECES: Final = 128
_BATCH: Final = 8
#: Before it stand marks, signs, single characters.
_FIRST_WORD: Final = 1000
_SMOOTH: Final = 1e-4
_ERF: Final = tuple(map(np.float32, (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)))


class MiniLM:
    """The model; any thread may use it, for it is never changed."""

    def __init__(self, weights: Weights) -> None:
        self._tensors = weights.tensors
        self._pieces = WordPieces.of(weights.vocabulary)
        self._words: Array = weights.tensors["embeddings.word_embeddings.weight"]
        self._weights = _piece_weights(weights.vocabulary, len(self._words))
        self._common = _common_directions(self._words)

    # --- static ----------------------------------------------------------------------------------

    def static(self, text: str) -> Array:
        """Return a vector of length one for a text: what its words mean, the rare ones most.

        Weights are those of smooth inverse frequency; what all words have in common is taken out.
        """
        ids = self._pieces.ids(text, _STATIC_PIECES)
        total: Array = self._weights[ids] @ self._words[ids]
        total = total - self._common @ (self._common.T @ total)
        if float(total @ total) < _EPSILON:
            # A text without a word still has its row: any direction will do.
            total[0] = 1
        return unit(total)

    # --- the whole model -------------------------------------------------------------------------

    def read(self, texts: Sequence[str]) -> Array:
        """Return a vector of length one for each text, as the model reads it."""
        found: Array = np.empty((len(texts), DIMENSIONS), np.float32)
        rows = [self._row(text) for text in texts]
        # Texts of like length together: what is padded is computed for nothing.
        order = sorted(range(len(rows)), key=lambda at: len(rows[at]))
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            found[batch] = self._encode([rows[at] for at in batch])
        return found

    def _row(self, text: str) -> list[int]:
        pieces = self._pieces
        return [pieces.first, *pieces.ids(text, _READ_PIECES - 2), pieces.last]

    def _encode(self, rows: Sequence[Sequence[int]]) -> Array:
        longest = max(map(len, rows))
        ids = np.zeros((len(rows), longest), np.int64)
        mask = np.zeros((len(rows), longest), np.float32)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
            mask[number, : len(row)] = 1.0
        state = self._embed(ids)
        for layer in range(_LAYERS):
            state = self._layer(f"encoder.layer.{layer}.", state, mask)
        total: Array = (state * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return unit(total)

    def _embed(self, ids: NDArray[np.int64]) -> Array:
        places = self._tensors["embeddings.position_embeddings.weight"][: ids.shape[1]]
        kinds = self._tensors["embeddings.token_type_embeddings.weight"][0]
        return self._norm("embeddings.LayerNorm.", self._words[ids] + places + kinds)

    def _layer(self, name: str, state: Array, mask: Array) -> Array:
        attended = self._dense(name + "attention.output.dense.", self._attend(name, state, mask))
        state = self._norm(name + "attention.output.LayerNorm.", state + attended)
        inner = gelu(self._dense(name + "intermediate.dense.", state))
        return self._norm(name + "output.LayerNorm.", state + self._dense(name + "output.dense.", inner))

    def _attend(self, name: str, state: Array, mask: Array) -> Array:
        batch, length, _ = state.shape
        query, key, value = (
            self._dense(f"{name}attention.self.{part}.", state)
            .reshape(batch, length, _HEADS, -1)
            .transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(DIMENSIONS / _HEADS))
        scores += (mask[:, None, None, :] - 1) * np.float32(1e9)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed: Array = (scores @ value).transpose(0, 2, 1, 3).reshape(batch, length, DIMENSIONS)
        return mixed

    def _dense(self, name: str, state: Array) -> Array:
        product: Array = state @ self._tensors[name + "weight"].T + self._tensors[name + "bias"]
        return product

    def _norm(self, name: str, state: Array) -> Array:
        centred = state - state.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + _EPSILON)
        normed: Array = centred / spread * self._tensors[name + "weight"] + self._tensors[name + "bias"]
        return normed


def _piece_weights(vocabulary: str, count: int) -> Array:
    """Return how much each piece counts; the vocabulary stands in the order of frequency (Zipf's law)."""
    frequency = 1 / (np.maximum(np.arange(count) - _FIRST_WORD, 0) + 50.0)
    frequency /= frequency.sum()
    weights = _SMOOTH / (_SMOOTH + frequency)
    for number, piece in enumerate(vocabulary.split("\n")[:count]):
        if not any(map(str.isalnum, piece)):
            weights[number] *= 0.05
        elif piece in COMMON_WORDS:
            weights[number] *= 0.2
    return weights.astype(np.float32)


def _common_directions(words: Array) -> Array:
    """Return the two directions in which most words lie."""
    usual = words[2000:20000]
    vectors: Array = np.linalg.eigh(usual.T @ usual)[1][:, -2:].astype(np.float32)
    return vectors


def unit(vectors: Array) -> Array:
    """Return vectors of length one with the same directions."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Array = (vectors / np.maximum(length, np.float32(1e-9))).astype(np.float32)
    return scaled


def gelu(values: Array) -> Array:
    """Return the Gaussian error linear unit; the error function is that of Abramowitz with Stegun, 7.1.26."""
    scaled = np.abs(values)
    scaled *= np.float32(0.7071067811865476)
    t = scaled * np.float32(0.3275911)
    t += 1
    np.reciprocal(t, out=t)
    series = np.full_like(t, _ERF[0])
    for factor in _ERF[1:]:
        series *= t
        series += factor
    series *= t
    # In place, since these arrays are far larger than any cache.
    np.multiply(scaled, scaled, out=scaled)
    np.negative(scaled, out=scaled)
    np.exp(scaled, out=scaled)
    series *= scaled
    np.subtract(1, series, out=series)
    np.copysign(series, values, out=series)
    series += 1
    series *= values
    series *= np.float32(0.5)
    return series
