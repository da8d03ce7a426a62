"""When a gateway claims a room, and that no two owners both append."""

from dataclasses import dataclass
from random import Random
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csp.cluster import ownership
from csp.cluster.ownership import OwnerSigns, Step, next_step, rank_of

NOW: Final = 1000.0
#: A gateway that hears the owner and has been connected for long.
CALM: Final = OwnerSigns(
    me="me", owner="other", claimed_at=500.0, is_leading=False, rank=0, connected_at=400.0, heard_at=NOW
)
RANKS: Final = (0, 1, 2, 5)


def claims_at(signs: OwnerSigns) -> float:
    """Return the first time, in milliseconds from NOW, at which the room is claimed."""
    return next(ms / 1000 for ms in range(10_000) if next_step(signs, NOW + ms / 1000 + 1e-6) is Step.CLAIM)


def test_a_room_whose_owner_is_heard_is_left_alone() -> None:
    assert next_step(CALM, NOW + 0.99) is Step.WAIT


@pytest.mark.parametrize("rank", RANKS)
def test_a_silent_owner_is_dead_after_a_second_and_each_rank_waits_longer(rank: int) -> None:
    assert claims_at(CALM._replace(rank=rank)) == pytest.approx(1.0 + 0.15 * rank, abs=0.002)


@pytest.mark.parametrize("rank", RANKS)
def test_an_owner_that_nobody_answers_for_is_dead_sooner(rank: int) -> None:
    assert claims_at(CALM._replace(rank=rank, deaf_since=NOW)) == pytest.approx(0.3 + 0.1 * rank, abs=0.002)


@pytest.mark.parametrize("rank", RANKS)
def test_a_room_that_was_left_is_claimed_at_once(rank: int) -> None:
    assert claims_at(CALM._replace(rank=rank, left_at=NOW)) == pytest.approx(0.1 * rank, abs=0.002)


@pytest.mark.parametrize("rank", RANKS)
def test_a_room_without_owner_is_claimed_when_the_connection_is_a_second_old(rank: int) -> None:
    new = CALM._replace(owner="", claimed_at=0.0, heard_at=0.0, connected_at=NOW, rank=rank)

    assert claims_at(new) == pytest.approx(1.0 + 0.1 * rank, abs=0.002)


@pytest.mark.parametrize("connected_at", [None, NOW - 0.9])
def test_a_gateway_that_may_have_been_cut_off_itself_does_not_claim(connected_at: float | None) -> None:
    signs = CALM._replace(connected_at=connected_at, heard_at=0.0, left_at=NOW, deaf_since=1.0)

    assert next_step(signs, NOW) is Step.WAIT


def test_a_new_connection_has_time_to_hear_the_owner() -> None:
    back = CALM._replace(heard_at=NOW - 60, connected_at=NOW - 0.5)

    assert claims_at(back) == pytest.approx(0.5, abs=0.002)


def test_a_new_claim_is_a_sign_of_life_and_ends_what_was_known_of_the_last_owner() -> None:
    claimed = CALM._replace(claimed_at=NOW, heard_at=0.0, left_at=NOW - 1, deaf_since=NOW - 1)

    assert next_step(claimed, NOW + 0.2) is Step.WAIT


def test_an_owner_that_reads_a_claim_of_another_steps_down_even_without_a_connection() -> None:
    assert next_step(CALM._replace(is_leading=True, connected_at=None), NOW) is Step.STEP_DOWN


def test_an_owner_goes_on_whatever_it_hears() -> None:
    signs = CALM._replace(owner="me", is_leading=True, heard_at=0.0, deaf_since=1.0, left_at=2.0)

    assert next_step(signs, NOW) is Step.WAIT


def test_an_owner_that_was_refused_without_a_claim_of_another_claims_again() -> None:
    assert next_step(CALM._replace(owner="me"), NOW) is Step.CLAIM


@given(st.sets(st.text(min_size=1, max_size=4), min_size=1, max_size=6), st.text(max_size=4))
def test_every_gateway_has_a_rank_of_its_own(names: set[str], room: str) -> None:
    ranks = sorted(rank_of(name, room, frozenset(names)) for name in names)

    assert ranks == list(range(len(names)))


def test_the_ranks_differ_from_room_to_room() -> None:
    gateways = frozenset({"a", "b", "c"})

    assert {rank_of("a", f"room-{number}", gateways) for number in range(20)} == {0, 1, 2}


# --- the law -------------------------------------------------------------------------------------


@dataclass
class Gateway:
    """A gateway in a world of lost heartbeats, late acknowledgements, and pauses."""

    name: str
    place: int = 0
    owner: str = ""
    claimed_at: float = 0.0
    heard_at: float = 0.0
    connected_at: float | None = 0.0
    deaf_since: float | None = None
    is_leading: bool = False
    #: The place of its own claim that was accepted but not acknowledged yet.
    claim: int | None = None

    def signs(self, rank: int) -> OwnerSigns:
        return OwnerSigns(
            me=self.name,
            owner=self.owner,
            claimed_at=self.claimed_at,
            is_leading=self.is_leading,
            rank=rank,
            connected_at=self.connected_at,
            heard_at=self.heard_at,
            deaf_since=self.deaf_since,
        )


@dataclass(frozen=True)
class Entry:
    """A message of the log."""

    writer: str
    is_claim: bool


NAMES: Final = ("a", "b", "c")
#: The usual ones come more often, so that histories get somewhere.
ACTIONS: Final = (
    *("think", "read all", "append", "acknowledge") * 3,
    *("read", "hear", "cut", "connect", "deaf"),
)


class World:
    """Three gateways and a log that accepts a message only from who knows its end."""

    def __init__(self) -> None:
        self.log: list[Entry] = []
        self.now = 0.0
        self.gateways = {name: Gateway(name) for name in NAMES}

    def act(self, name: str, action: str) -> None:
        one = self.gateways[name]
        match action:
            case "think":
                self.think(one)
            case "read":
                self.read(one)
            case "read all":
                for _ in self.log:
                    self.read(one)
            case "append":
                self.append(one)
            case "acknowledge":
                self.acknowledge(one)
            case "hear":
                one.heard_at = self.now
            case "cut" | "connect":
                one.connected_at = None if action == "cut" else self.now
            case "deaf":
                one.deaf_since = self.now

    def append(self, one: Gateway) -> None:
        if one.is_leading and one.place == len(self.log):
            self.log.append(Entry(one.name, is_claim=False))
            one.place += 1

    def acknowledge(self, one: Gateway) -> None:
        """Lead after an own claim, unless a later one has been read."""
        claim, one.claim = one.claim, None
        if claim is not None and (one.place <= claim or (one.place == claim + 1 and one.owner == one.name)):
            one.place, one.owner, one.is_leading = claim + 1, one.name, True

    def think(self, one: Gateway) -> None:
        rank = NAMES.index(one.name)
        match next_step(one.signs(rank), self.now):
            case Step.STEP_DOWN:
                one.is_leading = False
            case Step.CLAIM if one.place == len(self.log) and one.claim is None:
                self.log.append(Entry(one.name, is_claim=True))
                one.claim = one.place

    def read(self, one: Gateway) -> None:
        """Read the next message; a gateway handles a claim before it reads on."""
        if one.place < len(self.log):
            entry = self.log[one.place]
            one.place += 1
            if entry.is_claim:
                one.owner, one.claimed_at = entry.writer, self.now
            if one.is_leading:
                self.think(one)


@given(st.integers(0, 1 << 32))
def test_no_two_owners_both_append(seed: int) -> None:
    world, random = World(), Random(seed)
    for _ in range(600):
        world.now += random.choice((0.05, 0.5, 3.0))
        world.act(random.choice(NAMES), random.choice(ACTIONS))
    owner = ""
    for entry in world.log:
        owner = entry.writer if entry.is_claim else owner
        assert entry.writer == owner


def test_a_room_whose_owner_dies_finds_another() -> None:
    world = World()
    for _ in range(200):
        world.now += 0.1
        for name in NAMES:
            world.act(name, "read")
            world.act(name, "think")
            world.act(name, "acknowledge")
    assert [one.name for one in world.gateways.values() if one.is_leading] == ["a"]
    for _ in range(100):
        world.now += 0.1
        for name in ("b", "c"):
            world.act(name, "read")
            world.act(name, "think")
            world.act(name, "acknowledge")
    assert world.log[-1].writer in ("b", "c")
    assert ownership.SILENT_S < 2.0


@pytest.mark.parametrize("rank", RANKS)
def test_a_room_that_its_owner_let_go_is_claimed_at_once(rank: int) -> None:
    free = CALM._replace(owner="", claimed_at=NOW, rank=rank)

    assert claims_at(free) == pytest.approx(0.1 * rank, abs=0.002)


def test_of_many_gateways_the_last_ones_do_not_wait_for_all_others() -> None:
    gateways = frozenset(f"g{number}" for number in range(100))

    assert max(rank_of(name, "room", gateways) for name in gateways) == ownership.MOST_STEPS
