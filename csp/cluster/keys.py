"""Make the keys with which gateways authenticate to NATS servers."""

import os
from typing import Final

from csp.errors import Refused

_USER: Final = 20 << 3


def new_key() -> tuple[str, str]:
    """Return a new NKey of a user: its public half and its seed."""
    try:
        import nkeys
    except ModuleNotFoundError as exc:
        hint = "install the extra nats, for example: pip install 'csp-groupchat[nats]'"
        raise Refused("the package nkeys is not installed", hint) from exc
    seed = nkeys.encode_seed(os.urandom(32), _USER)
    public = nkeys.from_seed(bytearray(seed)).public_key
    return public.decode(), seed.decode()
