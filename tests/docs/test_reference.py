"""The reference pages say what the code says."""

from tests.docs.profile_keys import MEANINGS
from tests.docs.reference import ROOT, profile_paths, stale_pages


def test_the_reference_is_up_to_date() -> None:
    stale = [str(path.relative_to(ROOT)) for path in stale_pages()]

    assert stale == [], "run: python -m tests.docs.reference"


def test_every_key_of_a_profile_is_explained() -> None:
    assert set(MEANINGS) == {path for path, _, _ in profile_paths()}
