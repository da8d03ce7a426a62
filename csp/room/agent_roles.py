"""The duty of an agent: a short word chosen by its user, such as `reviewer`."""

import re
from typing import Final

#: A single word, so that text shown to other agents cannot contain instructions.
DUTY: Final = re.compile(r"[a-z][a-z0-9-]{0,23}")
_KEY: Final = "duty"


def duty_of(capabilities: object) -> str:
    """Return the duty in an agent's capabilities, or an empty string."""
    found = capabilities.get(_KEY) if isinstance(capabilities, dict) else None
    return found if isinstance(found, str) and DUTY.fullmatch(found) else ""
