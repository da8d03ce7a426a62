"""The duty of an agent: a short word of its user for what it does, such as `reviewer`."""

import re
from typing import Final

#: One word, so that what others are shown of an agent cannot carry instructions to them.
DUTY: Final = re.compile(r"[a-z][a-z0-9-]{0,23}")
_KEY: Final = "duty"


def duty_of(capabilities: object) -> str:
    """Return the duty in what an agent says of itself, or an empty string."""
    found = capabilities.get(_KEY) if isinstance(capabilities, dict) else None
    return found if isinstance(found, str) and DUTY.fullmatch(found) else ""
