"""Users of NATS servers: keys, and the tokens by which a server knows an operator's users."""

import base64
import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any, Final

import nkeys

_OPERATOR: Final = 14 << 3
_ACCOUNT: Final = 0
_USER: Final = 20 << 3
_LIMITS: Final = dict.fromkeys(("subs", "data", "payload", "imports", "exports", "conn", "leaf"), -1)
_STREAMS: Final = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), -1)


class Key:
    """A key pair of NATS."""

    def __init__(self, kind: int) -> None:
        # The package encodes no seed of an account, as its prefix is 0.
        self._pair = nkeys.KeyPair(keys=nkeys.nacl.signing.SigningKey(os.urandom(32)))
        self._kind = kind
        self.public = _encoded(bytes([kind]) + bytes(self._pair._keys.verify_key))

    @property
    def seed(self) -> str:
        """The private half, as it stands in files."""
        return str(nkeys.encode_seed(bytes(self._pair._keys), self._kind).decode())

    def token(self, subject: "Key", name: str, claims: dict[str, Any]) -> str:
        """Return a JWT about another key, signed by this one."""
        body = {"iat": int(time.time()), "iss": self.public, "name": name, "sub": subject.public}
        body |= {"nats": claims | {"version": 2}}
        body["jti"] = (
            base64.b32encode(hashlib.sha256(json.dumps(body).encode()).digest()).decode().rstrip("=")
        )
        signed = f"{_part({'typ': 'JWT', 'alg': 'ed25519-nkey'})}.{_part(body)}"
        return f"{signed}.{_url64(self._pair.sign(signed.encode()))}"


def new_user() -> Key:
    """Return the key of a new user."""
    return Key(_USER)


class Operator:
    """An operator with one account, whose users may do anything."""

    def __init__(self) -> None:
        self._key, self._account, system = Key(_OPERATOR), Key(_ACCOUNT), Key(_ACCOUNT)
        own = self._key.token(self._key, "tests", {"type": "operator"})
        limits = _LIMITS | {"wildcards": True}
        # The account of the servers themselves may have no streams.
        kinds = ((self._account, "csp", limits | _STREAMS), (system, "system", limits))
        preload = [
            f"{account.public}: {self._key.token(account, name, {'type': 'account', 'limits': of_account})}"
            for account, name, of_account in kinds
        ]
        #: What a server has to know of it.
        self.config = (
            f"operator: {own}\nsystem_account: {system.public}\n"
            f"resolver: MEMORY\nresolver_preload: {{ {', '.join(preload)} }}"
        )

    def write_creds(self, path: Path) -> Path:
        """Write the file of a new user."""
        user = new_user()
        claims = {"type": "user", "subs": -1, "data": -1, "payload": -1, "pub": {}, "sub": {}}
        token = self._account.token(user, "gateway", claims)
        path.write_text(
            f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{user.seed}\n------END USER NKEY SEED------\n"
        )
        return path


def _part(value: dict[str, Any]) -> str:
    return _url64(json.dumps(value).encode())


def _url64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _encoded(data: bytes) -> str:
    return base64.b32encode(data + bytes(nkeys.crc16_checksum(bytearray(data)))).decode().rstrip("=")
