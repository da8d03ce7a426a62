"""The tests of the life of one delivery."""

from itertools import product

import pytest

from csp.protocol.enums import PENDING, UNDELIVERED, DeliveryState
from csp.room.room_state import MOVES, Delivery, may_move

# queued -> held(reason) -> typed -> submitted -> confirmed. A step may be left out: an API agent
# types nothing. What was typed can be stuck, can fail, but can no longer be withdrawn or expire.
# `queued` again is a message that the loop guard let go; another `held` is another reason.
ALLOWED = {
    "queued": "held typed submitted confirmed failed withdrawn expired",
    "held": "queued held typed submitted confirmed failed withdrawn expired",
    "typed": "held submitted confirmed failed",
    "submitted": "confirmed",
    "confirmed": "",
    "failed": "",
    "withdrawn": "",
    "expired": "",
}
ENDS = {"submitted", "confirmed", "failed", "withdrawn", "expired"}


@pytest.mark.parametrize(("old", "new"), list(product(ALLOWED, ALLOWED)))
def test_delivery_moves_as_the_table_says(old: str, new: str) -> None:
    assert may_move(DeliveryState(old), DeliveryState(new)) == (new in ALLOWED[old].split())


def test_table_has_every_state() -> None:
    assert set(ALLOWED) == set(DeliveryState) == set(MOVES)


def test_pending_is_what_has_not_ended() -> None:
    assert set(DeliveryState) - ENDS == PENDING


def test_untouched_is_what_may_still_be_withdrawn_or_expire() -> None:
    for end in ("withdrawn", "expired"):
        assert {old for old, new in ALLOWED.items() if end in new} == {
            state for state in DeliveryState if Delivery(state, 0.0, "busy").is_untouched
        }


def test_what_is_stuck_in_a_composer_is_not_untouched() -> None:
    assert not Delivery(DeliveryState.HELD, 0.0, "stuck").is_untouched


def test_undelivered_are_the_ends_that_reached_nobody() -> None:
    assert ENDS - {"submitted", "confirmed"} == UNDELIVERED
