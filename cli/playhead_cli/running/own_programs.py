"""How a receiver that this command starts executes runs again: by this command."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from playhead_cli.session.configuration import for_children
from playhead_cli.session.session import Session

if TYPE_CHECKING:
    from playhead_receiver.config.configuration import Programs


def programs_of(session: Session) -> Programs:
    """The command ``playhead`` with the settings of this one, in its folder and its environment."""
    from playhead_receiver.config.configuration import Programs

    # -P: a folder that happens to hold a playhead_cli is no part of it.
    return Programs((sys.executable, "-P", "-m", "playhead_cli"), for_children(session.resolved))
