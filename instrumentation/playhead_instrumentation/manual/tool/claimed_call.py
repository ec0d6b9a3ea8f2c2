"""Make one attempt at an effect that is performed once: claim it, and record its outcome.

The claims are those of the data folder. An entry point names the package that stores them.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Final, Literal, TypeAlias

import msgspec
from opentelemetry.util._importlib_metadata import (
    entry_points,  # pyright: ignore[reportUnknownVariableType]
)

from playhead_core.claims import ENTRY_POINT, Claim, Claims, place_of_claims
from playhead_core.errors import OutcomeUnknown, StoreError, StoreUnavailable, UsageError
from playhead_core.facts import digest_of
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common import values
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.notices import Notices
from playhead_instrumentation.session.environment import own_folders
from playhead_instrumentation.session.session import Session
from playhead_semconv import attributes as a

log = Log(__name__)

OnUnknown: TypeAlias = Literal["raise", "again", "skip"]

LARGEST_RESULT: Final = 16 << 20
"""Bytes of the largest result that is kept."""

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.005, 0.25
"""How long an attempt waits for another before it asks again: doubled each time."""

_under_way: ContextVar[tuple[tuple[str, str], ...]] = ContextVar("playhead_under_way", default=())
"""Lineage and key of the effects in which this code runs."""


class _Opened:
    """The claims of this process, by data folder and receiver."""

    def __init__(self) -> None:
        self._claims: dict[tuple[str, str], Claims | None] = {}

    def of(self, session: Session) -> Claims | None:
        """None if nothing is installed that keeps claims, which is said once. Raises `StoreError`."""
        settings = session.settings
        own = str(session.process.attributes.get(a.PLAYHEAD_RUN_CLAIMS, ""))
        if own != place_of_claims(settings.claims):
            raise StoreUnavailable(
                "what this run claims is not kept where its origin has claimed",
                cause=f"the origin claimed at {own or 'its machine, with no PLAYHEAD_CLAIMS'}",
                hint=f"PLAYHEAD_CLAIMS={own}",
            )
        folder = own_folders(settings)[0]
        place = folder, settings.claims
        # no lock, which a fork could leave closed: two are as good as one
        if place not in self._claims:
            found = next(iter(entry_points(group=ENTRY_POINT)), None)
            if found is None:
                Notices().problem(
                    "playhead.idempotent does nothing: install playhead-agent, which keeps claims"
                )
            opened = None
            if found is not None:
                opened = found.load()(folder, settings.claims, settings.token, settings.certificate)
            self._claims.setdefault(place, opened)
        return self._claims[place]


_OPENED: Final = _Opened()


class OnceRule(msgspec.Struct, frozen=True):
    """What a program says about an effect that is to be done once."""

    name: str
    on_unknown: OnUnknown
    not_done: tuple[type[BaseException], ...]
    lineage: str


class ClaimedCall:
    """Asks with `ask` until that says that nothing is to be waited for; then it is over, or ours."""

    def __init__(
        self, session: Session, claims: Claims, rule: OnceRule, key: str, facts: dict[str, Any]
    ) -> None:
        """``facts``: attributes of the end fact, which are added to."""
        self.session: Final = session
        self.claims: Final = claims
        self.rule: Final = rule
        self.key: Final = key
        self.facts: Final = facts
        self.is_over = False
        """Whether there is a result, or an error, without doing anything."""
        self._claim: Claim | None = None
        self._wait_s = _FIRST_WAIT_S
        self._instead_of = b""
        self._id = "", ""

    def ask(self) -> float | None:
        """Claim the effect. Returns the seconds after which to ask again; None: it is decided.

        `OutcomeUnknown` if the rule says so; `UsageError` for a key that another effect uses;
        `StoreError` if nothing can be claimed: then nothing has been done.
        """
        if not self._id[0]:
            self._id = self._lineage(), digest_of(self.key.encode("utf-8", "surrogatepass")).hex()
        if self._id in _under_way.get():
            raise UsageError(f"{self.rule.name} calls itself under its own key {self.key!r}")
        with Shadow():
            claim = self._claim = self.claims.claim(*self._id, self.rule.name, self._instead_of)
        if claim.name != self.rule.name:
            raise UsageError(
                f"{self.rule.name} has the key {self.key!r}, which {claim.name} has used before",
                hint="say in the key what is done: f'refund:{order}'",
            )
        if claim.state == "busy":
            waited, self._wait_s = self._wait_s, min(2 * self._wait_s, _LONGEST_WAIT_S)
            return waited
        if claim.state == "unknown":
            return self._unknown(claim)
        self.is_over = claim.state == "done"
        self._say("given" if self.is_over else "again" if self._instead_of else "performed")
        return None

    def result(self) -> Any:
        """What an earlier attempt has returned; None for one that is taken as done."""
        claim = self._claim
        if claim is None or claim.state == "unknown":
            return None
        if claim.result is None:
            self._say("unknown")
            raise OutcomeUnknown(
                f"{self.rule.name} was done before as {self.key!r}, and its result was not kept"
            )
        with Shadow():
            return values.read(claim.result)

    @contextmanager
    def ours(self) -> Generator[None]:
        """Context manager: the effect is done inside. An error leaves its outcome open."""
        token = _under_way.set((*_under_way.get(), self._id))
        try:
            yield
        except self.rule.not_done:
            self._say("not done")
            with suppress(StoreError), Shadow():
                self.claims.give_back(self._attempt)
            raise
        except BaseException as error:
            text = self.session.redactor.text(f"{type(error).__name__}: {error}")
            self._say("unknown")
            with suppress(StoreError), Shadow():
                self.claims.failed(self._attempt, text[:1000])
            raise
        finally:
            _under_way.reset(token)

    def returned(self, value: Any) -> None:
        """The effect has been done."""
        try:
            kept = self._kept(value)
            with Shadow():
                self.claims.done(self._attempt, kept)
        except StoreError as problem:
            Notices().problem(
                f"{self.rule.name} was done as {self.key!r}, which is not kept: {problem.what}"
            )

    @property
    def _attempt(self) -> bytes:
        return b"" if self._claim is None else self._claim.attempt

    def _kept(self, value: Any) -> bytes | None:
        """``value`` as the tape keeps it; None if it does not."""
        if not self.session.redactor.content:
            return None
        try:
            with Shadow():
                text = values.kept(value)
            scrubber = self.session.redactor.response("application/json", "")
            kept = scrubber.chunk(text)
        except Exception:
            log.debug("playhead could not keep a result", exc_info=True)
            return None
        return kept if len(kept) <= LARGEST_RESULT else None

    def _lineage(self) -> str:
        own = self.session.process.attributes.get(a.PLAYHEAD_RUN_LINEAGE)
        trace_id = self.session.here().get_span_context().trace_id
        run = f"{trace_id:032x}" if trace_id else self.session.sink.instance.hex()
        return self.rule.lineage or own or run

    def _unknown(self, claim: Claim) -> float | None:
        rule = self.rule.on_unknown
        if rule == "again":
            self._instead_of = claim.attempt
            return 0.0
        if rule == "skip":
            self.is_over = True
            self._say("skipped")
            with Shadow():
                self.claims.done(claim.attempt, b"null")
            return None
        self._say("unknown")
        raise OutcomeUnknown(
            f"{self.rule.name} was begun before as {self.key!r}: whether it was done is not known",
            cause=claim.error or "the process that began it died",
            hint="when you know: playhead resume RUN --on-unknown resend, or --on-unknown skip",
        )

    def _say(self, outcome: str) -> None:
        self.facts[a.PLAYHEAD_IDEMPOTENT_OUTCOME] = outcome


def claimed_call(
    session: Session, rule: OnceRule, key: str, facts: dict[str, Any]
) -> ClaimedCall | None:
    """Return an attempt at an effect; None if nothing is installed that keeps claims."""
    claims = _OPENED.of(session)
    return None if claims is None else ClaimedCall(session, claims, rule, key, facts)
