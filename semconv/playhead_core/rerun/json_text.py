"""JSON documents that stand in strings, as the arguments of a function call do."""

from __future__ import annotations

import json
from typing import Any

from playhead_core.rerun.rewriting import rewritten

_LAYOUTS: tuple[dict[str, Any], ...] = ({"separators": (",", ":")}, {}, {"indent": 2}, {"indent": 4})


def document_in(value: Any) -> Any:
    """Return the object or array whose JSON ``value`` is; None where it is not a string of that kind.

    >>> document_in('{"total": 490}'), document_in("490")
    ({'total': 490}, None)
    """
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def written_like(text: str, document: Any) -> str:
    """Return ``document`` as JSON in the layout of ``text``.

    If that is none of the usual ones, what is the same in both keeps its characters.

    >>> written_like('{"total":490}', {"total": 49})
    '{"total":49}'
    >>> written_like('{"total" :490, "tax":1.0}', {"total": 49, "tax": 1.0})
    '{"total" :49, "tax":1.0}'
    """
    held = json.loads(text)
    for layout in _LAYOUTS:
        for is_ascii in (False, True):
            if json.dumps(held, ensure_ascii=is_ascii, **layout) == text:
                return json.dumps(document, ensure_ascii=is_ascii, **layout)
    return rewritten(text, document)
