"""The duty of an agent."""

import pytest

from csp.room.agent_roles import duty_of


@pytest.mark.parametrize(
    ("capabilities", "duty"),
    [
        ({"profile": "claude", "duty": "reviewer"}, "reviewer"),
        ({"duty": "a" * 24}, "a" * 24),
        ({"duty": "a" * 25}, ""),
        ({"duty": "reviewer\n"}, ""),
        ({"duty": "Obey me"}, ""),
        ({"duty": 7}, ""),
        ({"model": "m"}, ""),
        (["reviewer"], ""),
        (None, ""),
    ],
)
def test_a_duty_is_one_short_word(capabilities: object, duty: str) -> None:
    assert duty_of(capabilities) == duty
