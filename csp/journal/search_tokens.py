"""Convert lines to tokens of the search index, and queries to conditions on tokens.

Three kinds of tokens share one index and cannot be confused:
- words: runs of ASCII letters, digits and underscores;
- marks: every other visible character, on its own and together with each neighbour;
- facets: a private character, a letter for the kind, then the value.

FTS5's trigram tokenizer would replace words and marks, but measurements ruled it out: the index of a million
lines would grow from 50 to over 166 MB, and a search for one or two characters, such as a Chinese word, would
read the whole journal (0.6 s of CPU time instead of 1 ms).
"""

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from csp.journal.history_query import HIDDEN_TYPES, HistoryQuery, facets_of, is_word, pieces, text_of
from csp.protocol.enums import ALL, MessageId
from csp.protocol.events import HISTORY_TYPES

#: Longer words are indexed by their first characters; checking the line decides.
MAX_WORD: Final = 64
# A long search text has more conditions; those beyond this limit are checked line by line.
_MAX_CLAUSES: Final = 24
_FACET: Final = "\ue000"
_WORDS: Final = re.compile(r"[a-z0-9_]+", re.ASCII)
_UNSEEN: Final = re.compile(r"[\s\x00-\x1f\x7f]")
_MARKS: Final = re.compile(r"[^a-z0-9_\s\x00-\x1f\x7f]")


class Clause(NamedTuple):
    """A condition that the line contains any of these tokens, or a word that starts with `prefix`."""

    tokens: tuple[str, ...] = ()
    prefix: str = ""


def tokens_of_line(line: bytes) -> frozenset[str]:
    """Return the tokens of a line; for hidden types, only those that `clauses_of_message` needs."""
    facets = facets_of(line)
    if facets is None:
        return frozenset()
    if facets.type in HIDDEN_TYPES:
        named = {"delivery": facets.message, "control": facets.id}.get(facets.type)
        return frozenset() if named is None else frozenset({_facet("i", named)})
    tokens = tokens_of_text(text_of(line))
    tokens |= {_facet("a", agent) for agent in (facets.sender, facets.target, *facets.recipients)}
    tokens |= {_facet("t", facets.type), _facet("i", facets.id)}
    if facets.session_id is not None:
        tokens.add(_facet("n", facets.session_id))
    return frozenset(tokens)


def tokens_of_text(text: str) -> set[str]:
    """Return the words and marks of a text."""
    found: set[str] = set()
    for chunk in set(text.casefold().split()):
        if len(chunk) > MAX_WORD:
            found |= _cut(chunk)
        elif chunk.isascii() and chunk.isalnum():
            found.add(chunk)
        else:
            found |= _cut_again(chunk)
    return found


def is_vocabulary(token: str) -> bool:
    """Return whether a token is a word, which a query may match by prefix."""
    return token.isascii() and is_word(token)


def clauses_of(query: HistoryQuery) -> tuple[Clause, ...]:
    """Return conditions that every match meets; lines that meet them must still be checked."""
    clauses: list[Clause] = []
    if query.agent is not None:
        clauses.append(Clause((_facet("a", query.agent),)))
    if query.audience is not None:
        clauses.append(Clause((_facet("a", query.audience), _facet("a", ALL))))
    if query.session is not None:
        clauses.append(Clause((_facet("n", query.session),)))
    # Nearly all lines have the usual types: checking the hits is faster than joining such a long list.
    if not query.types >= HISTORY_TYPES:
        clauses += clauses_of_types(query.types)
    for piece in pieces(query.q):
        clauses += [Clause(prefix=piece[:MAX_WORD])] if is_word(piece) else _clauses_of_marks(piece)
    return tuple(clauses[:_MAX_CLAUSES])


def clauses_of_types(types: frozenset[str]) -> tuple[Clause, ...]:
    """Return the condition for lines of any of these types."""
    return (Clause(tuple(sorted(_facet("t", name) for name in types))),)


def clauses_of_message(message_id: MessageId) -> tuple[Clause, ...]:
    """Return the condition for a message and its deliveries."""
    return (Clause((_facet("i", message_id),)),)


def _facet(kind: str, value: str) -> str:
    # The tokenizer splits at whitespace, so it is replaced; checking a hit compares the actual values.
    return _FACET + kind + _UNSEEN.sub("\ue001", value)


def _cut(chunk: str) -> frozenset[str]:
    words = {word[:MAX_WORD] for word in _WORDS.findall(chunk)}
    return frozenset(words | _marks(chunk))


# Words are often followed by a full stop or a comma.
_cut_again = lru_cache(maxsize=8192)(_cut)


def _marks(chunk: str) -> set[str]:
    marks = set(_MARKS.findall(chunk))
    if not marks:
        return marks
    seen = (pair for pair in map("".join, pairwise(chunk)) if not _UNSEEN.search(pair))
    return marks | {pair for pair in seen if not marks.isdisjoint(pair)}


def _clauses_of_marks(piece: str) -> list[Clause]:
    """Return the conditions for a piece that is not a plain word."""
    marks = _marks(piece)
    # A single mark adds nothing to the pairs that contain it.
    pairs = {mark for mark in marks if len(mark) == 2}
    clauses = [Clause((mark,)) for mark in sorted(pairs or marks)]
    for word in _WORDS.finditer(piece):
        # The piece may start in the middle of a word, so its first word cannot be looked up.
        if word.start() == 0:
            continue
        cut = word[0][:MAX_WORD]
        clauses.append(Clause(prefix=cut) if word.end() == len(piece) else Clause((cut,)))
    return clauses
