"""The kept demo provider (`playhead demo --keep`): its address, and the programs that use it.

A file in the data folder names it. The file may outlive the provider, and another program may listen at
its port since then; so whoever listens has to prove that it knows the key in the file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path

FILE = "demo-provider.json"
ANSWERS_WITHIN_S = 10.0
STOP = "stop"
"""The secret word whose proof ends a kept provider."""


def variables(url: str) -> dict[str, str]:
    """Return the variables with which SDKs and example agents find a provider at ``url``."""
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_KEY": "demo",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "demo",
        "TOOLS_URL": url,
    }


def proof(key: str, said: str) -> str:
    """Return the proof for ``said``, which needs the key: 32 hex digits."""
    return hashlib.blake2b(said.encode(), key=key.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class KeptProvider:
    """A provider that was left running."""

    port: int
    """Its port on 127.0.0.1."""
    key: str
    """The secret with which it proves its identity: at most 64 characters."""
    examples: str
    """The folder whose programs find it: an absolute path without links."""

    @classmethod
    def read(cls, data_dir: Path) -> KeptProvider | None:
        """Return the provider that the file in the data folder names; None without such a file."""
        try:
            said = json.loads((data_dir / FILE).read_bytes())
            made = cls(int(said["port"]), str(said["key"]), str(said["examples"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return made if 0 < made.port < 65536 and 0 < len(made.key) <= 64 else None

    def content(self) -> bytes:
        """Return the content of its file."""
        return json.dumps(asdict(self)).encode()

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT``."""
        return f"http://127.0.0.1:{self.port}"

    def answers(self) -> bool:
        """Return whether it is this provider that listens at its port."""
        said = os.urandom(16).hex()
        return self._asked("GET", f"/kept/{said}") == proof(self.key, said).encode()

    def stop(self) -> None:
        """End it. Its port is free and its file is gone when this returns."""
        self._asked("DELETE", f"/kept/{proof(self.key, STOP)}", until_closed=True)

    def _asked(self, method: str, path: str, *, until_closed: bool = False) -> bytes:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=ANSWERS_WITHIN_S)
        try:
            connection.request(method, path)
            answer = connection.getresponse().read(1000)
            if until_closed and connection.sock is not None:
                connection.sock.recv(1)
            return answer
        except (OSError, HTTPException):
            return b""
        finally:
            connection.close()

    def is_for(self, words: Iterable[str], folder: Path) -> bool:
        """Return whether one of the words of a command names a path among the examples.

        ``folder``: the working folder of the command.
        """
        for word in words:
            path = os.path.realpath(folder / word)
            if word and (path + os.sep).startswith(self.examples + os.sep) and os.path.exists(path):
                return True
        return False


def found_by(
    words: Iterable[str], folder: Path, environ: Mapping[str, str], data_dir: Path
) -> dict[str, str]:
    """Return the variables with the address of the kept provider, if a program is an example.

    ``words``: its command, run in ``folder``. Empty if no provider is kept, if it has died, or
    if ``environ`` has another address. An API key is not an address: while the provider is kept,
    examples do not use the user's key.
    """
    if not (data_dir / FILE).exists():
        return {}
    kept = KeptProvider.read(data_dir)
    if kept is None or not kept.is_for(words, folder):
        return {}
    found = variables(kept.url)
    elsewhere = any(name.endswith("_URL") and name in environ for name in found)
    return found if not elsewhere and kept.answers() else {}
