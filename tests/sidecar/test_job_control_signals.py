"""Signals come as bytes to be read, each once; the rest is in test_relay_signals.py."""

import os
import signal
from unittest import mock

import pytest

from csp.sidecar.relay.job_control import Signals


@pytest.fixture
def signals() -> Signals:
    return Signals()


def test_a_signal_that_came_often_is_given_once_in_its_order(signals: Signals) -> None:
    os.write(signals._woken, bytes([28, 17, 28, 17, 1]))

    assert signals.drain() == [28, 17, 1]
    assert signals.drain() == []


def test_a_flood_of_signals_neither_blocks_nor_says_a_word(signals: Signals) -> None:
    assert not os.get_blocking(signals._woken)
    with mock.patch("csp.sidecar.relay.job_control.signal") as system:
        signals.hear([15])
    system.set_wakeup_fd.assert_called_once_with(signals._woken, warn_on_full_buffer=False)


def test_every_signal_that_is_to_be_heard_gets_our_handler(signals: Signals) -> None:
    with mock.patch("csp.sidecar.relay.job_control.signal") as system:
        signals.hear([15, 28])

    assert system.signal.call_args_list == [mock.call(15, signals._note), mock.call(28, signals._note)]


@pytest.mark.parametrize("is_continued", [True, False])
def test_a_stop_tells_whether_somebody_continued_us(signals: Signals, is_continued: bool) -> None:
    signals._note(signal.SIGCONT, None)  # long ago

    def stopped(group: int, number: int) -> None:
        assert (group, number) == (os.getpgrp(), signal.SIGTSTP)
        if is_continued:
            signals._note(signal.SIGCONT, None)

    with (
        mock.patch("csp.sidecar.relay.job_control.signal.signal") as handled,
        mock.patch.object(os, "killpg", stopped),
    ):
        assert signals.stop() is is_continued

    assert handled.call_args_list == [
        mock.call(signal.SIGTSTP, signal.SIG_DFL),
        mock.call(signal.SIGTSTP, signals._note),
    ]
