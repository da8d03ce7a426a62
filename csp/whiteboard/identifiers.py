"""Find identifiers in text: files, variables, error codes, hashes and ids.

A search for an identifier returns the notes with exactly this identifier first.

Text is untrusted and may be long, so no pattern here can match the same characters in two ways: the cost is
linear in the length of the text, and only its first `_MAX_CHARACTERS` characters are examined.
"""

import re
from typing import Final

_MAX_CHARACTERS: Final = 64 * 1024
_MAX_LENGTH: Final = 200
#: Runs of characters that may be an identifier; no identifier ends with one of `_JOINTS`.
_RUN: Final = re.compile(r"[A-Za-z0-9_$@~./\\:#+-]+")
_JOINTS: Final = "$@~./\\:#+-"
_TRIM: Final = ".,:;+$#@"
_HASH: Final = re.compile(r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,64}\Z")
_VERSION: Final = re.compile(r"v?\d+\.\d[a-z0-9.+-]*\Z")
_NUMBER: Final = re.compile(r"#?\d{3,}\Z")
_ERRNO: Final = re.compile(r"(?:E[A-Z]{4,}|SIG[A-Z0-9]{2,}|[A-Z]{7,})\Z")
_PLAIN: Final = re.compile(r"[A-Za-z0-9]+\Z")
_HUMP: Final = re.compile(r"[a-z0-9][A-Z]")
_ACRONYM: Final = re.compile(r"[A-Z]{2,}[a-z]")
_CODE: Final = re.compile(r"[A-Za-z]+-?\d[A-Za-z0-9-]*\Z")
_FILE: Final = re.compile(r"[\w@~-][\w.@~-]*\.[A-Za-z][A-Za-z0-9]{0,7}\Z")
_PLACE: Final = re.compile(r":\d+(?::\d+)?\Z")
_PARTS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SENTENCE: Final = re.compile(r"(?:e\.g|i\.e|etc|vs|and/or|n/a)\Z", re.IGNORECASE)
#: Ordinary words that contain punctuation or a capital letter.
_ORDINARY: Final = frozenset({"github", "javascript", "typescript", "openai", "ok", "i/o", "ui/ux"})


def identifiers(text: str) -> dict[str, None]:
    """Return the identifiers in a text in lower case and in order, including the parts of each path."""
    names: list[str] = []
    for run in _runs(text):
        whole = _PLACE.sub("", run.strip(_TRIM))
        parts = [whole]
        pieces = [piece for piece in re.split(r"[/\\]|::|:|#", whole) if piece]
        if len(pieces) > 1:
            parts += pieces
        if "." in whole and not _VERSION.match(whole):
            # Parts of `module.function` count if they look like identifiers; the stem of a file may not.
            parts += [piece for piece in re.split(r"[/\\:.]+", whole) if piece != whole]
        names += filter(is_identifier, parts)
    return {name.lower(): None for name in names}


def _runs(text: str) -> list[str]:
    """Return the runs of a text that may be identifiers."""
    runs = (run.rstrip(_JOINTS) for run in _RUN.findall(text[:_MAX_CHARACTERS]))
    return [run for run in runs if run]


def is_identifier(word: str) -> bool:
    """Return whether a word is an identifier."""
    if not 2 <= len(word) <= _MAX_LENGTH or word.lower() in _ORDINARY or _SENTENCE.match(word):
        return False
    if any(kind.match(word) for kind in (_HASH, _VERSION, _NUMBER, _ERRNO, _CODE, _FILE)):
        return True
    if "_" in word:
        return True
    if "/" in word or "\\" in word:
        return word.count("/") > 1 or "." in word or word.startswith(("/", "~"))
    if "." in word or "::" in word:
        return bool(re.match(r"[A-Za-z_][\w.:]*\Z", word))
    if word.startswith("--"):
        return len(word) > 3
    return _is_camel(word)


def is_hash(name: str) -> bool:
    """Return whether an identifier may be the beginning of a longer hash."""
    return _HASH.match(name) is not None


def spelt_out(text: str) -> str:
    """Return the words within a text's compound identifiers, so that a search for words finds them."""
    compounds = [run for run in _runs(text) if _is_camel(run.strip(_TRIM)) or re.search(r"[a-z][A-Z]", run)]
    return " ".join(" ".join(_PARTS.findall(run)) for run in compounds)


def _is_camel(word: str) -> bool:
    """Return whether an alphanumeric word has an inner capital letter, as in `parseJson` or `HTTPServer`."""
    if _PLAIN.match(word) is None:
        return False
    hump = _HUMP.search(word)
    return (hump is not None and not any(map(str.isdigit, word[: hump.start()]))) or bool(
        _ACRONYM.match(word)
    )
