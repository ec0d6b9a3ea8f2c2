"""Attribution of reads of clocks and entropy: to the program and its libraries, or to the machinery.

Only reads of the first kind are recorded. The module of the reading code decides; the decision is cached
by file name. Modules of the standard library that read on behalf of their caller (``uuid``, ``secrets``,
…) are skipped: their caller decides.
"""

from __future__ import annotations

import dis
import sys
from abc import abstractmethod
from types import CodeType, FrameType
from typing import Final

from playhead_instrumentation.patching.attribution.owners import Owner, owner_of

AGENT: Final = 1
MACHINERY: Final = 2
THROUGH: Final = 3
BY_MODULE: Final = 4
"""Place of code made at run time: its module decides, because its file name says nothing."""
ASKED: Final = 5
"""Place of code for which it counts as well whether it reads clocks on behalf of the program."""

LOOKED_THROUGH: Final = frozenset(
    (
        "_strptime collections contextlib copy dataclasses distro email email.message email.utils enum "
        "freezegun functools gzip importlib platform playhead_checkpoint.receiver_link "
        "playhead_checkpoint.sqlite_file random sched shutil "
        "tarfile tempfile time_machine timeit uuid zipfile "
    ).split()
)
"""Modules that read on behalf of their caller, with their submodules."""

BELOW: Final = frozenset(
    (
        "_pytest aiohttp aiohttp_retry anthropic anyio asyncpg botocore certifi coverage debugpy "
        "fsspec google.auth google.genai grpc grpc_status h11 h2 hpack httpcore httpcore2 httpx "
        "httpx2 httpx_sse hyperframe iniconfig mistralai openai opentelemetry pip pkg_resources "
        "playhead playhead_checkpoint.blobs playhead_checkpoint.claims playhead_checkpoint.workspace "
        "playhead_cli playhead_exporter playhead_instrumentation playhead_receiver playhead_replay "
        "playhead_core playhead_genai playhead_semconv "
        "pluggy psycopg psycopg_pool pydevd pytest requests "
        "s3transfer sentry_sdk setuptools sniffio trio urllib3 uvloop watchfiles websocket "
        "websockets wrapt wsproto xdist "
    ).split()
)
"""Packages that read for their own purposes: the HTTP stack, SDKs, drivers of databases, event loops,
telemetry, test runners."""

BELOW_MODULES: Final = frozenset(
    (
        "redis.asyncio.client redis.asyncio.cluster redis.asyncio.connection redis.client "
        "redis.cluster redis.connection redis.maint_notifications "
        "sqlalchemy.dialects.postgresql.asyncpg sqlalchemy.engine.default "
        "sqlalchemy.pool.base sqlalchemy.pool.impl sqlalchemy.sql.compiler "
        "sqlalchemy.util.queue "
    ).split()
)
"""Modules that read for their own purposes in packages that also read for the program: the ages of
connections in a pool and of what a cache holds, which depend on what a process has done before."""

WRITERS: Final = frozenset(
    "aiohttp.multipart httpx._multipart httpx2._multipart urllib3.filepost".split()
)
"""Modules of packages in `BELOW` whose draws are sent: the line between the fields of a form."""

RUNNERS: Final = frozenset("_pytest iniconfig pluggy pytest xdist".split())
"""Test runners. A recorded test runner prints its reads of clocks."""

_below = BELOW
"""Packages that read for their own purposes in this session."""


def is_below(top: str) -> bool:
    """Whether a package reads for its own purposes in this session."""
    return top in _below


def look_at_runners(of_program: bool) -> None:
    """Set whether test runners are part of the program, or only run the recorder.

    As part of it they decide what it does by what they read: the next folder of ``tmp_path``, the tests.
    """
    global _below
    _below = BELOW - RUNNERS if of_program else BELOW
    for readers in _all:
        readers.forget()


SECRETS: Final = frozenset(
    (
        "argon2 asyncssh authlib bcrypt Crypto Cryptodome cryptography ecdsa itsdangerous jose jwcrypto "
        "jwt nacl oauthlib OpenSSL paramiko passlib rsa secrets ssl"
    ).split()
)
"""Modules that draw keys, tokens and nonces. Their draws are recorded only if that was chosen."""

_secrets = SECRETS
"""Modules of `SECRETS` that count as readers themselves in this session."""


def look_through_secrets(through: bool) -> None:
    """Set whether reads of the modules in `SECRETS` count as reads of their callers."""
    global _secrets
    _secrets = frozenset[str]() if through else SECRETS
    _values.forget()


DRAWS: Final = ("urandom", "getrandom")
"""Suffixes of the names by which Python code draws from the system."""

_NATIVE: Final = SECRETS - sys.stdlib_module_names
"""Packages whose compiled code may call `os.urandom` without a frame on the stack."""


def draws_secrets(frame: FrameType | None) -> bool:
    """Whether code that draws from the system does so for a secret, whatever its caller.

    `random.SystemRandom` does, on which `secrets` is built. So does compiled code of a cryptography
    library: the Python code that then seems to draw calls a function of another name.
    """
    if frame is None or not _secrets:
        return False
    code = frame.f_code
    if code.co_qualname.startswith("SystemRandom.") and frame.f_globals.get("__name__") == "random":
        return True
    # The view looks up the few names; the set would go through all modules at each draw.
    if sys.modules.keys().isdisjoint(_NATIVE):
        return False
    place = id(code), frame.f_lasti
    known = _draws.get(place)
    if known is None or known[0] is not code:
        if len(_draws) >= MOST_DRAWS:
            _draws.clear()
        known = _draws[place] = code, _calls_by_name(code, frame.f_lasti)
    return not known[1]


MOST_DRAWS: Final = 1024

_draws: Final[dict[tuple[int, int], tuple[CodeType, bool]]] = {}
"""Answers by identity of the code object and position in it; the hash of a code object is slow."""


def _calls_by_name(code: CodeType, at: int) -> bool:
    """Whether the function called at ``at`` in ``code`` has a name with one of the suffixes `DRAWS`."""
    names = (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars)
    if not any(name.endswith(DRAWS) for name in names):
        return False
    called = ""
    instructions = {one.offset: one for one in dis.get_instructions(code)}
    call = instructions[at].positions
    if call is None or call.col_offset is None:
        return True  # the code was compiled without positions
    for offset, one in instructions.items():
        place = one.positions
        begins = None if place is None else (place.lineno, place.col_offset)
        # A call begins at the name of the called function.
        if offset < at and begins == (call.lineno, call.col_offset) and isinstance(one.argval, str):
            called = one.argval
    return called.endswith(DRAWS)


_all: Final[list[Readers]] = []
"""Those of values, and of files where these are recorded."""


class Readers:
    """Says whether code reads on behalf of the program, by its place."""

    __slots__ = ("_modules", "places")

    def __init__(self) -> None:
        _all.append(self)
        self.places: Final[dict[str, int]] = {}
        """Known places, by file name. Who marks a file here decides for it."""
        self._modules: Final[dict[str, int]] = {}

    def by_agent(self, frame: FrameType | None) -> bool:
        """Whether the code of ``frame`` reads on behalf of the program."""
        while frame is not None:
            name = frame.f_code.co_filename
            place = self.places.get(name) or self._learn(name, frame)
            if place == BY_MODULE:
                place = self._of(str(frame.f_globals.get("__name__", "")))
            if place != THROUGH:
                return place == AGENT if place != ASKED else by_agent(frame)
            frame = frame.f_back
        return self._at_bottom()

    def forget(self) -> None:
        """The rules have changed: decide anew for every file."""
        self.places.clear()
        self._modules.clear()

    def _learn(self, name: str, frame: FrameType) -> int:
        owner, module = owner_of(name), str(frame.f_globals.get("__name__", ""))
        place = BY_MODULE if owner is Owner.MADE else self._of_file(name, owner, module)
        self.places[name] = place
        return place

    def _of(self, module: str) -> int:
        place = self._modules.get(module)
        if place is None:
            place = self._modules[module] = self._of_module(module, top_of(module))
        return place

    @abstractmethod
    def _of_file(self, name: str, owner: Owner, module: str) -> int:
        """The place of a file, from whose code ``module`` was made."""

    @abstractmethod
    def _of_module(self, module: str, top: str) -> int:
        """The place of a module. ``top``: see `top_of`."""

    @abstractmethod
    def _at_bottom(self) -> bool:
        """The answer where all code on the stack was looked through."""


def top_of(module: str) -> str:
    """The package of a module, as the tables above name it: of ``google.auth.x``, ``google.auth``."""
    top, _, rest = module.partition(".")
    return f"{top}.{rest.partition('.')[0]}" if top in _IN_PARTS else top


_IN_PARTS: Final = frozenset(("google", "playhead_checkpoint"))
"""Packages whose parts are packages of their own: the program has checkpoints, the recorder claims."""


class _OfValues(Readers):
    """For reads of clocks and entropy."""

    __slots__ = ()

    def _of_file(self, name: str, owner: Owner, module: str) -> int:
        if name.startswith("<frozen "):
            return THROUGH if name.startswith("<frozen importlib") else MACHINERY
        secret = _of_secrets(module)
        if secret is not None:
            return secret
        if owner is Owner.STANDARD:
            return _named(module, LOOKED_THROUGH, THROUGH, MACHINERY)
        return self._of(module)

    def _of_module(self, module: str, top: str) -> int:
        loaded = getattr(sys.modules.get(module), "__file__", None)
        if module in WRITERS:
            return AGENT
        if is_below(top) or module in BELOW_MODULES:
            return MACHINERY
        if isinstance(loaded, str) and owner_of(loaded) is Owner.STANDARD:
            return _named(module, LOOKED_THROUGH, THROUGH, MACHINERY)
        return _named(module, LOOKED_THROUGH - sys.stdlib_module_names, THROUGH, AGENT)

    def _at_bottom(self) -> bool:
        return False


def _of_secrets(module: str) -> int | None:
    """The place of a module of `SECRETS`; None for any other module."""
    top = module.partition(".")[0]
    if top not in SECRETS:
        return None
    if top in _secrets:
        return MACHINERY
    return THROUGH if top in sys.stdlib_module_names else AGENT


def _named(module: str, names: frozenset[str], found: int, otherwise: int) -> int:
    return found if module in names or module.partition(".")[0] in names else otherwise


_values: Final = _OfValues()

PLACES: Final = _values.places
"""Known places of readers of clocks and entropy, by file name."""

by_agent: Final = _values.by_agent
"""Whether the code of a frame reads a clock or entropy on behalf of the program."""
