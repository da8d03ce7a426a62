"""The sessions of a room: those that run, the last ones that have ended."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from csp.protocol.enums import AgentId, SessionId
from csp.protocol.events import AnyEvent, ModeChanged, Redacted
from csp.protocol.session_parts import Change
from csp.room.sessions.session_reducer import started, step, without_message, without_texts
from csp.room.sessions.session_state import Session

KEPT_ENDED: Final = 16
KEPT_COLLABORATIONS: Final = 32


def changes_sessions(event: AnyEvent) -> bool:
    """Tell whether an event may change a session."""
    return getattr(event, "session_id", None) is not None or isinstance(event, Redacted)


class Sessions(msgspec.Struct, omit_defaults=True):
    by_id: dict[SessionId, Session] = msgspec.field(default_factory=dict)
    #: The newest session of each thread, over or not.
    threads: dict[str, SessionId] = msgspec.field(default_factory=dict)

    def copy(self) -> "Sessions":
        """Return sessions that can go on by themselves."""
        return Sessions(dict(self.by_id), dict(self.threads))

    def get(self, session_id: str | None) -> Session | None:
        """Return a session that is remembered."""
        return None if session_id is None else self.by_id.get(SessionId(session_id))

    def find(self, name: str) -> Session | None:
        """Return a session by its id, else by the name of its thread."""
        return self.get(name) or self.newest_in(name)

    def newest_in(self, thread: str) -> Session | None:
        """Return the session of a thread, running or finished."""
        return self.get(self.threads.get(thread))

    def live_in(self, thread: str) -> Session | None:
        """Return the session that goes on in a thread."""
        newest = self.newest_in(thread)
        return None if newest is None or newest.is_over else newest

    def live(self) -> Iterator[Session]:
        """Yield the sessions that go on."""
        return (session for session in self.by_id.values() if not session.is_over)

    def live_with(self, agent: AgentId) -> list[Session]:
        """Return the sessions that go on in which `agent` takes part."""
        return [session for session in self.live() if agent in session.agents or agent in session.turns]

    def is_sealed(self, marks: Mapping[SessionId, int]) -> bool:
        """Return whether one of these phases is still running and sealed."""
        found = ((self.get(session_id), phase) for session_id, phase in marks.items())
        return any(session is not None and session.seal == phase for session, phase in found)

    def seals_of(self, agent: AgentId) -> dict[SessionId, int]:
        """Return the sealed phases that an agent is in; what it says belongs to all of them."""
        return {session.id: session.seal for session in self.live() if session.binds(agent)}

    def apply(self, event: AnyEvent) -> None:
        """Bring the session that an event is about up to date."""
        if isinstance(event, Redacted):
            self.by_id = {key: without_message(session, event) for key, session in self.by_id.items()}
            return
        session_id = getattr(event, "session_id", None)
        if session_id is None:
            return
        if isinstance(event, ModeChanged) and event.change is Change.STARTED and event.setup is not None:
            self.by_id[session_id] = started(event, event.setup)
            self.threads[event.thread] = session_id
        elif session_id in self.by_id:
            self.by_id[session_id] = step(self.by_id[session_id], event)
            if isinstance(event, ModeChanged) and event.change is Change.CONTINUED:
                self.threads[event.thread] = session_id
            if isinstance(event, ModeChanged) and event.change is Change.ENDED:
                # In the order of their ends: one that outlives many others is not the first to go.
                self.by_id[session_id] = self.by_id.pop(session_id)
                self._forget_old()

    def _forget_old(self) -> None:
        """Forget those that ended long ago; what can go on is remembered longer."""
        ended = [session for session in self.by_id.values() if session.is_over]
        plain = [session.id for session in ended if session.setup.collaboration is None]
        others = [session.id for session in ended if session.setup.collaboration is not None]
        for session_id in (*plain[:-KEPT_ENDED], *others[:-KEPT_COLLABORATIONS]):
            thread = self.by_id.pop(session_id).thread
            if self.threads.get(thread) == session_id:
                del self.threads[thread]

    def drop_texts(self) -> None:
        """Take out everything that was said."""
        self.by_id = {key: without_texts(session) for key, session in self.by_id.items()}
