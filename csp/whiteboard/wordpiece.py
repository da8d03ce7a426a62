"""Cut text into the pieces of words that a BERT model knows (WordPiece, lower case)."""

import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

UNKNOWN: Final = "[UNK]"
FIRST: Final = "[CLS]"
LAST: Final = "[SEP]"
_LONGEST_WORD: Final = 100
_CJK: Final = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2FA1F),
)


class WordPieces:
    """The tokenizer of one vocabulary."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        self._vocabulary = vocabulary
        self.unknown = vocabulary[UNKNOWN]
        self.first = vocabulary[FIRST]
        self.last = vocabulary[LAST]
        self._pieces = lru_cache(maxsize=50_000)(self._split)

    @classmethod
    def of(cls, lines: str) -> "WordPieces":
        """Read a vocabulary that has one piece a line."""
        return cls({piece: number for number, piece in enumerate(lines.split("\n")) if piece})

    def __len__(self) -> int:
        return len(self._vocabulary)

    def ids(self, text: str, most: int) -> list[int]:
        """Return at most so many pieces of a text, without the marks of its beginning and end."""
        found: list[int] = []
        for word in words_of(text):
            found += self._pieces(word)
            if len(found) >= most:
                return found[:most]
        return found

    def _split(self, word: str) -> tuple[int, ...]:
        """Return the longest known pieces from the left on; a word that has none is unknown as a whole."""
        if len(word) > _LONGEST_WORD:
            return (self.unknown,)
        found: list[int] = []
        start = 0
        while start < len(word):
            lead = "##" if start else ""
            for end in range(len(word), start, -1):
                known = self._vocabulary.get(lead + word[start:end])
                if known is not None:
                    found.append(known)
                    start = end
                    break
            else:
                return (self.unknown,)
        return tuple(found)


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case without accents; every sign is a word of its own."""
    for chunk in unicodedata.normalize("NFD", text.lower()).split():
        word = ""
        for char in chunk:
            if char.isascii() and char.isalnum():
                word += char
                continue
            category = unicodedata.category(char)
            if category in ("Mn", "Cc", "Cf") or char == "\ufffd":
                continue
            if _stands_alone(char, category):
                if word:
                    yield word
                yield char
                word = ""
            else:
                word += char
        if word:
            yield word


def _stands_alone(char: str, category: str) -> bool:
    code = ord(char)
    is_sign = char.isascii() or category.startswith("P")
    return is_sign or any(low <= code <= high for low, high in _CJK)
