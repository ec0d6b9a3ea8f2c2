"""The script that a shell loads, and its protocol for completion."""

from __future__ import annotations

import os
import re
from typing import Any

from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

VARIABLE = "_PLAYHEAD_COMPLETE"
"""Variable with which a shell requests completions."""

BREAKS = re.compile(r"[:=<>]")
"""Characters at which bash begins a new word."""

SOURCE = """\
%(complete_func)s() {
    local IFS=$'\\n' type value response
    response=$(env COMP_LINE="${COMP_LINE:0:$COMP_POINT}" %(complete_var)s=bash_complete $1)
    while IFS=',' read -r type value; do
        if [[ $type == 'file' ]]; then
            compopt -o default
        elif [[ $type == 'dir' ]]; then
            compopt -o dirnames
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=("$value")
            [[ $value == *[:=] ]] && compopt -o nospace
        fi
    done <<< "$response"
    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class BashWords(BashComplete):
    """Bash, which splits ``agent:refund``: read the whole line, and answer with the last part."""

    source_template = SOURCE

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one that is being typed, and that one."""
        line = os.environ.get("COMP_LINE", "")
        words = split_arg_string(line)
        begun = words.pop() if words and not line[-1:].isspace() else ""
        return words[1:], begun

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return the part of a word after the last character at which bash splits it."""
        torn = [found.end() for found in BREAKS.finditer(self.get_completion_args()[1])]
        return f"{item.type},{item.value[torn[-1] :] if torn else item.value}"


def use() -> None:
    """Register `BashWords` with click."""
    add_completion_class(BashWords, "bash")
