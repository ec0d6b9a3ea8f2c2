"""Removes credentials before anything reaches the sink, in any mode.

`playhead_core.credentials` defines what a credential is; `redactor` finds and remembers them.
`spans` applies it to the spans of the program and of other instrumentors, `pieces` to what is sent in
pieces.
"""

from playhead_core.credentials.rules import RULES, Rule
from playhead_instrumentation.redaction.redactor import Redactor, key_of_user

__all__ = ["RULES", "Redactor", "Rule", "key_of_user"]
