"""``playhead verify FILE``: whether a tape file matches its chains."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead_cli.output.integrity import (
    difference_lines,
    findings_of,
    process_lines,
    process_object,
    state_of,
    when,
)
from playhead_cli.session.session import Session
from playhead_core.errors import UsageError
from playhead_core.integrity import signed_of
from playhead_core.untrusted.shown_text import in_one_line
from playhead_receiver.integrity.signing import fingerprint, problems, public_key
from playhead_replay.run.run import trace_of
from playhead_replay.tape_files.integrity import inspect
from playhead_replay.tape_files.tape_file import read_tape_file

if TYPE_CHECKING:
    from playhead_cli.json_output.shown import PrintedChainFinding, PrintedFileCustody, PrintedSignature
    from playhead_core.integrity import Signature
    from playhead_replay.tape_files.integrity import Chained
    from playhead_replay.tape_files.tape_file import TapeFile

MOST_SHOWN = 50


def verify_file(session: Session, path: Path, key_text: str | None = None) -> int:
    """Check a file and report its defects. Return exit status 1 if there are any.

    ``key_text``: the public key with which it must be signed, or a file with that key. `TapeMissing`,
    `CorruptTape` if it is damaged, `TapeTooNew`.
    """
    key = None if key_text is None else _key(key_text)
    found = read_tape_file(path)
    processes = inspect(found)
    trace_id = trace_of(found.tapes, found.spans)
    wrong = [one for one in processes if one.differences]
    signature = CheckedSignature.of(found, processes, trace_id, key)
    status = 1 if wrong or signature.problems else 0
    if session.as_json:
        findings: list[PrintedChainFinding] = [each for one in wrong for each in findings_of(one)]
        for problem in signature.problems:
            findings.append({"what": "signature", "problem": problem})
        printed: PrintedFileCustody = {
            "schema_version": 1,
            "file": str(path),
            "trace_id": trace_id or None,
            "findings": findings,
            "processes": [process_object(one) for one in processes],
            "signature": signature.plain(),
        }
        session.print_json(printed)
        return status
    lines = [*difference_lines(wrong), *(f"signature: {one}" for one in signature.problems)]
    for line in lines[:MOST_SHOWN]:
        click.echo(in_one_line(line))
    if len(lines) > MOST_SHOWN:
        session.say(f"and {len(lines) - MOST_SHOWN} more")
    _say(session, path, processes, signature)
    return status


def _key(text: str) -> bytes:
    return public_key(text)


@dataclass(frozen=True, slots=True)
class CheckedSignature:
    """The signature of a file, and why it is not valid."""

    signature: Signature | None
    problems: list[str]
    is_checked: bool
    """Whether it was checked; this needs the library."""
    is_known: bool
    """Whether the key is one that the user gave."""

    @classmethod
    def of(
        cls, found: TapeFile, processes: list[Chained], trace_id: str, key: bytes | None
    ) -> CheckedSignature:
        """Check it. ``key``: the public key with which the file must be signed."""
        try:
            wrong, is_checked = problems(found, processes, trace_id, key), True
        except UsageError:  # the library is not installed, and no key was given
            wrong, is_checked = list[str](), False
        return cls(found.signature, wrong, is_checked, key is not None)

    def line(self) -> str:
        """As a line of text."""
        if self.signature is None:
            return "not signed"
        name = fingerprint(self.signature.key)
        if not self.is_checked:
            return f"signed with {name}, which was not checked: pip install 'playhead[sign]'"
        if self.problems:
            return f"its signature with {name} is no good"
        whose = "" if self.is_known else "; whose key that is only --key can tell"
        return f"signed {when(signed_of(self.signature).time_ns)} with {name}{whose}"

    def plain(self) -> PrintedSignature | None:
        """As an object for JSON."""
        if self.signature is None:
            return None
        good = not self.problems if self.is_checked else None
        return {"key": fingerprint(self.signature.key), "good": good, "key_was_given": self.is_known}


def _say(session: Session, path: Path, processes: list[Chained], signature: CheckedSignature) -> None:
    states = {state_of(one) for one in processes}
    for one in processes:
        for line in process_lines(one):
            session.say(in_one_line(line))
    session.say(in_one_line(signature.line()))
    if "changed" in states or signature.problems:
        session.say(f"{path} does not match its hash chain or signature; see the lines above")
    elif states == {"whole"}:
        session.say(f"{path} matches its hash chain")
    else:
        session.say(f"{path} is a valid file; parts without a hash chain may have been changed")
