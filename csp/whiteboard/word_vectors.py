"""Static word vectors from WordLlama, whose wheel contains the weights, so nothing is ever downloaded.

A text's vector is the weighted mean of its pieces' vectors. Weights follow smooth inverse frequency, so rare
words determine the topic of a text.
"""

import importlib.util
import logging
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from csp.whiteboard.note_index import COMMON_WORDS

log = logging.getLogger(__name__)

Array = NDArray[np.float32]

DIMENSIONS: Final = 256
_MODEL: Final = "l2_supercat"
#: The start of a text shows its topic; this also limits the work for one text.
_MAX_CHARACTERS: Final = 4096
#: Special, byte and single-character pieces are first in the vocabulary.
_FIRST_WORD: Final = 300
_SMOOTHING: Final = 1e-4
_COMMON_WEIGHT: Final = 0.2
_PUNCTUATION_WEIGHT: Final = 0.05
#: Lighter pieces (punctuation, bytes, the most frequent words) are not compared one by one.
_LIGHT: Final = 0.06
#: The weight of the word-by-word comparison relative to that of whole texts, tuned on a labelled set.
_WORD_BY_WORD: Final = 0.8


class WordVectors:
    """Converts texts to vectors; it is immutable, so any thread may use it.

    `tokenizer` splits a text into pieces, and row n of `vectors` is the vector of piece n.
    """

    def __init__(self, tokenizer: Any, vectors: Array) -> None:
        self._tokenizer = tokenizer
        self._vectors = vectors
        self._weights = _piece_weights(tokenizer.get_vocab(), len(vectors))

    def embed(self, text: str) -> Array:
        """Return a unit vector for the meaning of a text."""
        return self._mean(self._pieces(text))

    def compare(self, q: str, texts: Sequence[str]) -> list[float]:
        """Return each text's similarity to `q`, word by word: slower and better than comparing vectors.

        Each piece of `q` is matched with the most similar piece of the text.
        """
        pieces = self._pieces(q)
        whole, heavy = self._mean(pieces), pieces[self._weights[pieces] > _LIGHT]
        asked, weights = unit(self._vectors[heavy]), self._weights[heavy]
        found = []
        for text in texts:
            pieces = self._pieces(text)
            near = float(self._mean(pieces) @ whole)
            known = unit(self._vectors[pieces[self._weights[pieces] > _LIGHT]])
            if len(asked) and len(known):
                best = (asked @ known.T).max(axis=1)
                near += _WORD_BY_WORD * (float(best @ weights / weights.sum()) - near)
            found.append(near)
        return found

    def _mean(self, pieces: NDArray[np.int64]) -> Array:
        total: Array = self._weights[pieces] @ self._vectors[pieces]
        if not total.any():
            # A text without known pieces still needs a row; any direction will do.
            total[0] = 1
        return unit(total)

    def _pieces(self, text: str) -> NDArray[np.int64]:
        # The tokenizer rejects lone surrogates.
        clean = text[:_MAX_CHARACTERS].lower().encode(errors="replace").decode()
        pieces = np.array(self._tokenizer.encode(clean, add_special_tokens=False).ids, np.int64)
        return pieces[pieces < len(self._vectors)]


@lru_cache(maxsize=1)
def load_word_vectors() -> WordVectors | None:
    """Load the installed weights; log a warning and return None if they cannot be read.

    WordLlama's files are read without importing it, which would take a second and load much unused code.
    """
    found = importlib.util.find_spec("wordllama")
    if found is None or found.origin is None:
        raise ImportError("wordllama is not installed")
    folder = Path(found.origin).parent
    try:
        tokenizer = _load_tokenizer(folder / "tokenizers" / f"{_MODEL}_tokenizer_config.json")
        data = (folder / "weights" / f"{_MODEL}_{DIMENSIONS}.safetensors").read_bytes()
        # The file contains one tensor: the length of a header, the header, and the numbers.
        start = 8 + int.from_bytes(data[:8], "little")
        tensor = msgspec.json.decode(data[8:start])["embedding.weight"]
        if tensor["dtype"] != "F16":
            raise ValueError(f"expected weights of type F16, got {tensor['dtype']}")
        numbers = np.frombuffer(data, np.float16, offset=start).reshape(tensor["shape"])
    except Exception as exc:  # the tokenizer raises nothing more specific
        log.warning("search by meaning is off", extra={"problem": str(exc)})
        return None
    return WordVectors(tokenizer, numbers.astype(np.float32))


def _load_tokenizer(path: Path) -> Any:
    """Load a tokenizer for lower-case text, in steps.

    Loading it at once would block all other threads for about 0.1 s; a third of it is for capital letters.
    """
    from tokenizers import Tokenizer, models

    described = msgspec.json.decode(path.read_bytes())
    model = described["model"]
    merges = [tuple(merge.split(" ")) for merge in model["merges"] if merge == merge.lower()]
    vocabulary = {
        piece: number
        for piece, number in model["vocab"].items()
        if piece == piece.lower() or piece.startswith("<0x")
    }
    options = {name: model[name] for name in ("unk_token", "fuse_unk", "byte_fallback", "ignore_merges")}
    empty = described | {"model": model | {"vocab": {}, "merges": []}}
    tokenizer = Tokenizer.from_str(msgspec.json.encode(empty).decode())
    tokenizer.model = models.BPE(vocab=vocabulary, merges=merges, **options)
    return tokenizer


def unit(vectors: Array) -> Array:
    """Scale vectors to length one."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: Array = (vectors / np.maximum(length, np.float32(1e-9))).astype(np.float32)
    return scaled


def _piece_weights(vocabulary: dict[str, int], count: int) -> Array:
    """Return each piece's weight; the vocabulary is sorted by frequency, which follows Zipf's law."""
    frequency = 1 / (np.maximum(np.arange(count) - _FIRST_WORD, 0) + 50.0)
    weights = _SMOOTHING / (_SMOOTHING + frequency / frequency.sum())
    for piece, number in vocabulary.items():
        if number < count:
            word = piece.strip("▁").lower()
            if not any(map(str.isalnum, word)):
                weights[number] *= _PUNCTUATION_WEIGHT
            elif word in COMMON_WORDS:
                weights[number] *= _COMMON_WEIGHT
    scaled: Array = weights.astype(np.float32)
    return scaled
