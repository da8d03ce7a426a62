"""Keys and inputs reach the child in order, never inside one another."""

import os
from collections.abc import Iterator

import pytest

from csp.sidecar.relay.input_queue import MAX_HOLD_S, MAX_KEYS_BYTES, InputQueue


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    os.set_blocking(reader, False)
    yield reader, writer
    os.close(reader)
    os.close(writer)


def drain(keyboard: InputQueue, pipe: tuple[int, int]) -> tuple[bytes, list[tuple[int, int]]]:
    reader, writer = pipe
    written, done = b"", []
    while not keyboard.is_empty:
        done += keyboard.write(writer)
        written += os.read(reader, 1 << 16)
    return written, done


def test_keys_never_fall_inside_an_input(pipe: tuple[int, int]) -> None:
    keyboard = InputQueue()
    paste = b"p" * 200_000
    keyboard.press(b"before")
    keyboard.insert(paste, (1, 7))
    assert keyboard.write(pipe[1]) == []  # the pipe is full in the middle of the paste
    keyboard.press(b"after")
    keyboard.insert(b"\r", (1, 8))

    assert drain(keyboard, pipe) == (b"before" + paste + b"after\r", [(1, 7), (1, 8)])


def test_an_empty_input_is_done_in_its_turn(pipe: tuple[int, int]) -> None:
    keyboard = InputQueue()
    keyboard.insert(b"", (1, 1))

    assert keyboard.write(pipe[1]) == [(1, 1)]


def test_held_keys_come_after_the_input_they_waited_for(pipe: tuple[int, int]) -> None:
    keyboard = InputQueue()
    keyboard.hold(1.0, now=10.0)
    keyboard.press(b"one")
    keyboard.insert(b"paste", (1, 1))
    keyboard.press(b"two")
    keyboard.release()
    keyboard.press(b"three")

    assert drain(keyboard, pipe)[0] == b"pasteonetwothree"
    assert not keyboard.is_holding


def test_no_hold_is_longer_than_the_longest() -> None:
    keyboard = InputQueue()
    keyboard.hold(60.0, now=10.0)
    assert keyboard.held_until == 10.0 + MAX_HOLD_S
    keyboard.hold(1.0, now=11.0)
    assert keyboard.held_until == 10.0 + MAX_HOLD_S
    keyboard.release()
    keyboard.hold(0.25, now=20.0)
    assert keyboard.held_until == 20.25


@pytest.mark.parametrize("seconds", [-1.0, float("nan")])
def test_a_hold_of_no_time_ends_at_once(seconds: float) -> None:
    keyboard = InputQueue()
    keyboard.hold(seconds, now=10.0)

    assert keyboard.held_until == 10.0


def test_keys_are_not_taken_without_end(pipe: tuple[int, int]) -> None:
    keyboard = InputQueue()
    keyboard.hold(1.0, now=0.0)
    assert keyboard.takes_keys
    keyboard.press(bytes(MAX_KEYS_BYTES))
    assert not keyboard.takes_keys
    keyboard.release()
    drain(keyboard, pipe)

    assert keyboard.takes_keys


def test_what_was_meant_for_a_dead_child_is_forgotten_but_not_what_is_held(pipe: tuple[int, int]) -> None:
    keyboard = InputQueue()
    keyboard.press(b"old")
    keyboard.insert(b"old", (1, 1))
    keyboard.hold(1.0, now=0.0)
    keyboard.press(b"new")
    keyboard.clear()
    keyboard.release()

    assert drain(keyboard, pipe) == (b"new", [])


def test_a_brain_may_give_two_megabytes_until_they_are_typed(pipe: tuple[int, int]) -> None:
    keyboard = InputQueue()
    keyboard.insert(bytes((2 << 20) - 1), (1, 1))
    assert keyboard.takes_input
    keyboard.insert(b"x", (1, 2))
    assert not keyboard.takes_input
    drain(keyboard, pipe)
    assert keyboard.takes_input

    keyboard.insert(bytes(2 << 20), (1, 3))
    keyboard.clear()
    assert keyboard.takes_input


def test_held_keys_count_although_the_child_they_came_after_is_gone() -> None:
    keyboard = InputQueue()
    keyboard.hold(1.0, now=0.0)
    keyboard.press(bytes(MAX_KEYS_BYTES))
    keyboard.clear()

    assert not keyboard.takes_keys


def test_a_release_of_nothing_leaves_nothing_to_write() -> None:
    keyboard = InputQueue()
    keyboard.hold(1.0, now=0.0)
    keyboard.release()

    assert keyboard.is_empty
