"""Keep a board's notes in an OpenAI vector store, with one file per note.

All methods block. Every provider failure is raised as CallFailed. The package `openai` is imported
when first needed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from csp.errors import CallFailed
from csp.protocol.enums import MessageId
from csp.protocol.notes import NoteView
from csp.room.board_state import file_of, seq_of

#: The number of days after its last use until a store expires.
DAYS: Final = 7
_TIMEOUT_S: Final = 10.0
_TRIES: Final = 1
_PAGE: Final = 100


class OpenAIStore:
    """The vector stores of one API key."""

    def __init__(self, api_key: str, base_url: str | None = None, timeout_s: float = _TIMEOUT_S) -> None:
        try:
            from openai import OpenAI
        except ImportError as exc:
            raise CallFailed("the package openai is not installed", "install csp-groupchat[openai]") from exc
        self._client: OpenAI = OpenAI(
            api_key=api_key, base_url=base_url, timeout=timeout_s, max_retries=_TRIES
        )

    def close(self) -> None:
        """Close the connections to the provider."""
        self._client.close()

    def create(self, name: str) -> str:
        """Create an empty store; return its id."""
        with _failures():
            made = self._client.vector_stores.create(
                name=name, expires_after={"anchor": "last_active_at", "days": DAYS}
            )
            store: str = made.id
            return store

    def renew(self, store: str) -> bool:
        """Renew a store's lease; return whether the store still exists."""
        from openai import NotFoundError

        with _failures():
            try:
                known = self._client.vector_stores.update(
                    store, expires_after={"anchor": "last_active_at", "days": DAYS}
                )
            except NotFoundError:
                return False
            lives: bool = known.status != "expired"
            return lives

    def notes(self, store: str) -> set[MessageId]:
        """Return the ids of the notes in a store."""
        with _failures():
            files = self._client.vector_stores.files.list(store, limit=_PAGE)
            return {MessageId(str(file.attributes["note"])) for file in files if file.attributes}

    def add(self, store: str, note: NoteView) -> None:
        """Add a note to a store."""
        file = file_of(note)
        attributes: dict[str, str | float | bool] = {
            "note": note.id,
            "idx": note.idx,
            "author": note.author,
            "kind": note.kind,
            "seq": seq_of(note.id),
            "source": note.source.id if note.source else "",
        }
        with _failures():
            # The provider rejects empty files.
            sent = self._client.files.create(
                file=(file.path.replace("/", "_"), file.text.encode(errors="replace") or b" "),
                purpose="assistants",
            )
            self._client.vector_stores.files.create(store, file_id=sent.id, attributes=attributes)

    def remove(self, store: str, what: str | int) -> None:
        """Remove one note, given by its id or its source message's id, or all notes before a seq."""
        with _failures():
            for file in self._client.vector_stores.files.list(store, limit=_PAGE):
                known = file.attributes or {}
                is_old = isinstance(what, int) and float(known.get("seq", what)) < what
                if is_old or what in (known.get("note"), known.get("source")):
                    self._client.vector_stores.files.delete(file.id, vector_store_id=store)
                    self._client.files.delete(file.id)

    def search(self, store: str, q: str, count: int) -> dict[MessageId, float]:
        """Return the best-matching notes, best first, each with its score."""
        with _failures():
            page = self._client.vector_stores.search(store, query=q, max_num_results=min(count, 50))
            found: dict[MessageId, float] = {}
            for hit in page.data:
                if hit.attributes and "note" in hit.attributes:
                    found.setdefault(MessageId(str(hit.attributes["note"])), hit.score)
            return found


@contextmanager
def _failures() -> Iterator[None]:
    """Convert errors of the provider's package to CallFailed."""
    from openai import APIStatusError, APITimeoutError, OpenAIError

    try:
        yield
    except APIStatusError as exc:
        raise CallFailed(
            f"OpenAI returned status {exc.status_code}", is_passing=exc.status_code in (408, 429)
        ) from exc
    except APITimeoutError as exc:
        raise CallFailed("OpenAI did not respond in time", is_passing=True) from exc
    except OpenAIError as exc:
        raise CallFailed(f"OpenAI cannot be reached: {str(exc)[:200]}", is_passing=True) from exc
