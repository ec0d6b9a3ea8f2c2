"""Signatures of tape files: Ed25519, with keys in OpenSSH or PEM format, using `cryptography`."""

from __future__ import annotations

import base64
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from playhead_core.errors import CorruptTape, UsageError
from playhead_core.facts import Fact
from playhead_core.integrity import ChainMapping, Link, Signature, Signed, signed_bytes, signed_of
from playhead_replay.tape_files.integrity import Chained
from playhead_replay.tape_files.tape_file import Keeper, TapeFile

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SCHEME = "ed25519"
KEY_BYTES = 32
MOST_BYTES = 64 * 1024
"""Largest size of a key file, in bytes."""
_SSH = b"ssh-ed25519"
_MADE_BY = "make one: ssh-keygen -t ed25519 -f playhead-key"


class Signing:
    """A `Keeper` of `tape_file` that wraps another keeper and signs its records."""

    def __init__(self, keeper: Keeper, key: Ed25519PrivateKey, trace_id: str) -> None:
        """``trace_id``: of the run that the file holds."""
        self._keeper = keeper
        self._key = key
        self._trace_id = bytes.fromhex(trace_id)
        self._heads: dict[bytes, tuple[bytes, int, bytes]] = {}

    def take(self, fact: Fact) -> None:
        """Pass on a fact as it is written."""
        self._keeper.take(fact)

    def records(self) -> Iterable[Link | ChainMapping]:
        """The records of the wrapped keeper; the heads of its chains are included in the signature."""
        for record in self._keeper.records():
            if isinstance(record, Link):
                _, links, _ = self._heads.get(record.instance, (b"", 0, b""))
                self._heads[record.instance] = record.instance, links + 1, record.link
            yield record

    def sign(self, facts: int, spans: int, digest: bytes) -> Signature:
        """A signature over the file."""
        heads = [self._heads[instance] for instance in sorted(self._heads)]
        said = signed_bytes(Signed(self._trace_id, time.time_ns(), facts, spans, heads, digest))
        public = self._key.public_key().public_bytes_raw()
        message = Signature(SCHEME, public, said, b"").message
        return Signature(SCHEME, public, said, self._key.sign(message))


def private_key(path: Path, passphrase: Callable[[], str]) -> Ed25519PrivateKey:
    """The key in a file. ``passphrase`` is called if the key has one. `UsageError`."""
    _require_library()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key

    data = _read(path)
    load = load_ssh_private_key if b"OPENSSH PRIVATE KEY" in data else load_pem_private_key
    try:
        try:
            key = load(data, None)
        except TypeError:  # the key has a passphrase
            key = load(data, passphrase().encode())
    except Exception as problem:  # the library raises several types
        if isinstance(problem, UsageError):
            raise
        raise UsageError(
            f"{path} holds no private key that can be read", cause=str(problem), hint=_MADE_BY
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"{path} is not a key of Ed25519", hint=_MADE_BY)
    return key


def public_key(text: str) -> bytes:
    """The 32 bytes of a public key, from a file's text or an OpenSSH line. `UsageError`."""
    _require_library()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key, load_ssh_public_key

    data = text.encode() if text.startswith("ssh-") else _read(Path(text))
    if b"PRIVATE KEY" in data:
        raise UsageError(f"{text} is a private key", hint=f"give the public one: {text}.pub")
    load = load_pem_public_key if b"PUBLIC KEY" in data else load_ssh_public_key
    try:
        key = load(data.strip())
    except Exception as problem:  # the library raises several types
        raise UsageError(
            f"{text} holds no public key that can be read", cause=str(problem), hint=_MADE_BY
        ) from None
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError(f"{text} is not a key of Ed25519", hint=_MADE_BY)
    return key.public_bytes_raw()


def fingerprint(key: bytes) -> str:
    """The fingerprint that people compare, as ``ssh-keygen -lf`` prints it."""
    blob = b"".join(len(one).to_bytes(4, "big") + one for one in (_SSH, key))
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def problems(
    found: TapeFile, processes: Sequence[Chained], trace_id: str, key: bytes | None = None
) -> list[str]:
    """Why the signature of a file is not valid. ``key``: the key that must have signed it."""
    signature = found.signature
    if signature is None:
        return ["it is not signed"] if key is not None else []
    wrong: list[str] = []
    if key is not None and signature.key != key:
        wrong.append(f"it is signed with another key: {fingerprint(signature.key)}")
    if not _verifies(signature):
        wrong.append("its signature does not verify")
    try:
        signed = signed_of(signature)
    except CorruptTape as problem:
        return [*wrong, problem.what]
    if signed.digest != found.digest:
        wrong.append("it was changed after it was signed")
    if (signed.facts, signed.spans) != (sum(map(len, found.tapes)), len(found.spans)):
        wrong.append("it has not as many facts and spans as were signed")
    if signed.trace_id.hex() != trace_id:
        wrong.append("the signature is of another run")
    heads = {one.origin: (one.links, one.head) for one in processes if one.links}
    if {instance: (links, head) for instance, links, head in signed.heads} != heads:
        wrong.append("its chains are not those that were signed")
    return wrong


def _verifies(signature: Signature) -> bool:
    _require_library()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if signature.scheme != SCHEME or len(signature.key) != KEY_BYTES:
        return False
    try:
        key = Ed25519PublicKey.from_public_bytes(signature.key)
        key.verify(signature.signature, signature.message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _read(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as problem:
        raise UsageError(
            f"the key {path} cannot be read", cause=os.strerror(problem.errno or 0)
        ) from None
    if len(data) > MOST_BYTES:
        raise UsageError(f"{path} is no key: it has more than {MOST_BYTES} bytes", hint=_MADE_BY)
    return data


def _require_library() -> None:
    if find_spec("cryptography") is None:
        raise UsageError(
            "signatures need the package cryptography",
            hint="pip install 'playhead[sign]'",
        )
