"""Names of runs: the agent's name and a number."""

from __future__ import annotations

import re

NAMELESS = "run"
LONGEST = 60


def agent_word(name: str) -> str:
    """``name`` as it stands in a run's name: lower case, digits, dashes; ``run`` if nothing is left.

    It does not end in a dash and a number, so that the number of the run can be told from it.
    """
    word = re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-._")[:LONGEST].strip("-._")
    word = re.sub(r"-(?=\d+\Z)", "_", word)
    return word or NAMELESS
