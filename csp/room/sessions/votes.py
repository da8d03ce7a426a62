"""Ballots: the candidates' labels, the agents' votes and their count."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from csp.protocol.enums import AgentId, SessionId
from csp.protocol.session_parts import Candidate
from csp.room.agent_text import Spoken, Vote
from csp.room.sessions.session_state import BallotVote, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The result of a ballot: votes by label, most votes first; `leaders` has several entries in a tie."""

    counts: dict[str, int]
    leaders: tuple[Candidate, ...]
    is_quorate: bool

    @property
    def winner(self) -> Candidate | None:
        """The winning candidate, if there is one."""
        return self.leaders[0] if self.is_quorate and len(self.leaders) == 1 else None


def label_of(number: int) -> str:
    """Return the label of the `number`-th candidate, counted from 0: A to Z, then AA, AB."""
    high, low = divmod(number, 26)
    return (chr(ord("A") + high - 1) if high else "") + chr(ord("A") + low)


def candidates(session: SessionId, number: int, agents: Sequence[AgentId]) -> tuple[Candidate, ...]:
    """Label the agents of a ballot in an order that does not reveal their identities."""

    def rank(agent: AgentId) -> str:
        return sha256(f"{session}:{number}:{agent}".encode()).hexdigest()

    ordered = sorted(agents, key=rank)
    return tuple(Candidate(label=label_of(at), agent=agent) for at, agent in enumerate(ordered))


def read_vote(commands: Sequence[Spoken], labels: Sequence[str]) -> BallotVote | None:
    """Return the last vote for one of the labels."""
    votes = [spoken for spoken in commands if isinstance(spoken, Vote) and spoken.label in labels]
    return BallotVote(votes[-1].label, votes[-1].reason) if votes else None


def tally(votes: Mapping[AgentId, BallotVote], named: Sequence[Candidate], voters: int) -> Tally:
    """Count the votes; votes for the voter's own proposal count only if there are no others."""
    owner = {candidate.label: candidate.agent for candidate in named}
    cast = {agent: vote for agent, vote in votes.items() if vote.label in owner}
    others = {agent: vote for agent, vote in cast.items() if owner[vote.label] != agent}
    found = Counter(vote.label for vote in (others or cast).values())
    counts = {label: found[label] for label in sorted(found, key=lambda label: (-found[label], label))}
    most = max(counts.values(), default=0)
    leaders = tuple(candidate for candidate in named if most and counts.get(candidate.label) == most)
    return Tally(counts=counts, leaders=leaders, is_quorate=bool(cast) and 2 * len(cast) >= voters)


def tally_of(session: Session) -> Tally:
    """Count a session's last ballot."""
    named = session.stage.candidates or session.counted
    return tally(session.votes, named, len(session.agents))
