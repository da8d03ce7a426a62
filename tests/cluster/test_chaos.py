"""Gateways and NATS servers die under load; what was acknowledged is not lost, doubled or reordered."""

from pathlib import Path

import pytest

from tests.chaos.cluster import FAULTS, Report, Scene, faults_of
from tests.chaos.crowd import play as play_crowd


async def play(folder: Path, faults: list[str], senders: int = 6) -> Report:
    return await Scene(folder, seed=11, senders=senders, pause_s=0.05, calm_s=0.2).play(faults)


async def test_a_short_chaos_loses_doubles_and_reorders_nothing(tmp_path: Path) -> None:
    report = await play(tmp_path, ["owner kill", "nats follower", "owner stop", "owner term"])

    assert report.is_good, report.figures()
    assert report.acknowledged > 50


@pytest.mark.full
async def test_a_long_chaos_loses_doubles_and_reorders_nothing(tmp_path: Path) -> None:
    report = await play(tmp_path, faults_of(kills=5, mix=2 * len(FAULTS), seed=11), senders=20)

    assert report.is_good, report.figures()


def test_a_report_is_bad_if_anything_is_wrong() -> None:
    good = Report(1, acknowledged=5, are_mirrors_equal=True, is_stream_equal=True)
    bad = [
        Report(1, 5, lost=["a"], are_mirrors_equal=True, is_stream_equal=True),
        Report(1, 5, doubled=["a"], are_mirrors_equal=True, is_stream_equal=True),
        Report(1, 5, reordered=["a"], are_mirrors_equal=True, is_stream_equal=True),
        Report(1, 5, failures=["a"], are_mirrors_equal=True, is_stream_equal=True),
        Report(1, 5, is_stream_equal=True),
        Report(1, 5, are_mirrors_equal=True),
        Report(1, 0, are_mirrors_equal=True, is_stream_equal=True),
    ]

    assert good.is_good
    assert not any(report.is_good for report in bad)


def test_the_faults_of_a_seed_are_always_the_same() -> None:
    assert faults_of(3, 7, 5) == faults_of(3, 7, 5)
    assert sorted(faults_of(2, 7, 5)) == sorted(["owner kill"] * 2 + list(FAULTS))


async def test_everybody_in_a_crowd_gets_every_event(tmp_path: Path) -> None:
    report = await play_crowd(tmp_path, watchers=60, agents=9, per_s=20, minutes=0.05)

    assert (report.lost, report.gaps, report.missing) == (0, 0, 0)
    assert report.events == 60
