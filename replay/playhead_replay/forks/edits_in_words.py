"""Parses edits as a user writes them: ``request.model=gpt-4.1``, ``tool_result=@answer.json``; and
patch files.

docs/forks.md is the reference.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playhead_core.errors import UsageError
from playhead_core.rerun.edits import between, path_of, steps_of
from playhead_core.rerun.plans import Edit

REQUEST, RESPONSE, STATE = "request", "response", "state"
TOOL_RESULT, FUNCTION = "tool_result", "function"
ROOTS = (REQUEST, RESPONSE, TOOL_RESULT, FUNCTION, STATE)
EDITORS = ("VISUAL", "EDITOR")
OTHERWISE = "vi"


def parse_edit(text: str) -> tuple[str, Edit]:
    """The root that is edited, and the edit. `UsageError`.

    >>> parse_edit("request.messages[-1].content=hello")
    ('request', Edit(path='messages[-1].content', value='hello', remove=False, add=False))
    >>> parse_edit("temperature!")
    ('request', Edit(path='temperature', value=None, remove=True, add=False))
    """
    adds = text.startswith("+")
    path, equals, value = text.removeprefix("+").partition("=")
    if not equals and path.endswith("!") and not adds:
        root, rest = _rooted(path[:-1])
        return root, Edit(rest, remove=True)
    if not equals:
        raise UsageError(
            f"{text or 'nothing'} is no edit",
            hint="PATH=VALUE, +PATH=VALUE to add, PATH! to remove; see docs/forks.md",
        )
    root, rest = _rooted(path.strip())
    return root, Edit(rest, _value(value), add=adds)


def _rooted(path: str) -> tuple[str, str]:
    steps = steps_of(path)
    if steps and steps[0] in ROOTS:
        return str(steps[0]), path_of(steps[1:])
    return REQUEST, path


def _value(text: str) -> Any:
    if text.startswith("@"):
        path = Path(text[1:])
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as problem:
            raise UsageError(f"{path} cannot be read", cause=str(problem)) from None
        if path.suffix != ".json":
            return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def patch_file(path: Path) -> list[tuple[str, Edit]]:
    """The edits in a file: lines of edits, or a JSON Patch (RFC 6902). `UsageError`."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"{path} cannot be read", cause=str(problem)) from None
    if text.lstrip().startswith("["):
        try:
            return [_operation(one) for one in json.loads(text)]
        except (ValueError, KeyError, TypeError, AttributeError) as problem:
            raise UsageError(f"{path} is not a JSON Patch", cause=str(problem)) from None
    lines = (line.strip() for line in text.splitlines())
    return [parse_edit(line) for line in lines if line and not line.startswith("#")]


def _operation(one: Mapping[str, Any]) -> tuple[str, Edit]:
    names = [name.replace("~1", "/").replace("~0", "~") for name in str(one["path"]).split("/")[1:]]
    root = names.pop(0) if names and names[0] in ROOTS else REQUEST
    appends = bool(names) and names[-1] == "-"
    steps = [int(name) if name.lstrip("-").isdigit() else name for name in names]
    path = path_of([*steps[:-1], -1] if appends else steps)
    if one["op"] not in ("add", "replace", "remove"):
        raise UsageError(f"{one['op']} is not known of a patch", hint="add, replace, remove")
    if one["op"] == "remove":
        return root, Edit(path, remove=True)
    return root, Edit(path, one["value"], add=one["op"] == "add")


def edit_by_hand(document: Any, environ: Mapping[str, str]) -> list[Edit]:
    """Let the user edit ``document`` in ``$EDITOR``. Returns the changes. `UsageError`."""
    editor = next((environ[name] for name in EDITORS if environ.get(name)), OTHERWISE)
    with tempfile.TemporaryDirectory(prefix="playhead-edit-") as folder:
        path = os.path.join(folder, "request.json")
        Path(path).write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")
        try:
            done = subprocess.run([*shlex.split(editor), path], env=dict(environ), check=False)
        except OSError as problem:
            raise UsageError(f"{editor} cannot be started", cause=str(problem)) from None
        if done.returncode:
            raise UsageError(
                f"{editor} has given up (exit {done.returncode})", hint="nothing was started"
            )
        try:
            edited = json.loads(Path(path).read_text("utf-8"))
        except ValueError as problem:
            raise UsageError("the edited value is no longer JSON", cause=str(problem)) from None
    found = between(document, edited)
    if not found:
        raise UsageError("nothing was edited", hint="a fork without an edit: leave --edit out")
    return found
