from csp.cluster.names import SHARDS, log_subject, news_subject, shard_of, stream_name


def test_a_room_stays_in_its_shard() -> None:
    # Another shard would be another log: these are for ever.
    assert [shard_of(room) for room in ("default", "csp", "a", "a-2")] == [7, 2, 3, 2]
    assert {shard_of(f"room-{number}") for number in range(200)} == set(range(SHARDS))


def test_a_room_has_one_subject_for_its_batches_and_one_for_their_news() -> None:
    assert (log_subject("default"), news_subject("default")) == ("csp.j.7.default", "csp.e.7.default")
    assert stream_name(2) == "CSP_J_2"
