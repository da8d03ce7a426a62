"""The secret of a room, from which the tokens for its agents and pages are derived."""

import secrets
from hashlib import sha256
from pathlib import Path
from typing import Final

from csp.errors import Broken
from csp.fast_start.atomic_files import PRIVATE_FOLDER, read_plain, replace_file

_SECRET_BYTES: Final = 32
_CHECKSUM_BYTES: Final = 8
_RESTORE: Final = "restore it from a backup, or delete it; agents and pages must then join again"


def load_secret(folder: Path) -> bytes:
    """Return the room's 32 secret bytes; the first call creates them, and they never change.

    Raise Broken if the file is damaged: a new secret would silently lock out every agent and page.
    """
    path = folder / "secret"
    try:
        kept = read_plain(path, 2 * _SECRET_BYTES)
    except FileNotFoundError:
        made = secrets.token_bytes(_SECRET_BYTES)
        try:
            path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            replace_file(path, _with_checksum(made))
        except OSError as exc:
            hint = "check the disk and the folder's permissions"
            raise Broken(f"the room's secret {str(path)!r} cannot be written: {exc.strerror}", hint) from exc
        return made
    except OSError as exc:
        raise Broken(f"the room's secret {str(path)!r} cannot be read: {exc.strerror}", _RESTORE) from exc
    secret = kept[:_SECRET_BYTES]
    # The secrets of older rooms have no checksum.
    if len(kept) != _SECRET_BYTES and kept != _with_checksum(secret):
        raise Broken(f"the room's secret {str(path)!r} is damaged", _RESTORE)
    return secret


def _with_checksum(secret: bytes) -> bytes:
    return secret + sha256(secret).digest()[:_CHECKSUM_BYTES]
