"""Inputs count as read when the child has read them; looks become rarer while it does not."""

from csp.sidecar.relay.input_queue import NEVER, UnreadInput


def test_nothing_is_looked_for_before_something_is_written() -> None:
    unread = UnreadInput()
    unread.add([], 5.0)

    assert unread.look_at == NEVER


def test_what_is_read_is_returned_once() -> None:
    unread = UnreadInput()
    unread.add([(1, 7)], 5.0)
    unread.add([(1, 8)], 5.01)

    assert 5.0 < unread.look_at < 5.1
    assert unread.look(True, 5.03) == [(1, 7), (1, 8)]
    assert unread.look_at == NEVER
    assert unread.look(True, 6.0) == []


def test_looks_become_rarer_up_to_a_quarter_of_a_second() -> None:
    unread = UnreadInput()
    unread.add([(1, 7)], 0.0)
    now, pauses = unread.look_at, []
    for _ in range(6):
        assert unread.look(False, now) == []
        pauses.append(unread.look_at - now)
        now = unread.look_at

    assert [round(pause, 2) for pause in pauses] == [0.04, 0.08, 0.16, 0.25, 0.25, 0.25]


def test_a_new_input_is_looked_for_soon_again() -> None:
    unread = UnreadInput()
    unread.add([(1, 7)], 0.0)
    for now in (1.0, 2.0, 3.0, 4.0):
        unread.look(False, now)
    unread.add([(1, 8)], 4.0)

    assert unread.look_at < 4.1


def test_what_a_child_left_unread_is_forgotten() -> None:
    unread = UnreadInput()
    unread.add([(1, 7)], 0.0)
    unread.clear()

    assert unread.look_at == NEVER
    assert unread.look(True, 1.0) == []
