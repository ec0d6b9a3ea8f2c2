"""Contents of stored tapes: of a hostile one, reading comes to an end."""

from pathlib import Path

import msgspec
import pytest
from support.tapes.handmade import HandMade

from playhead_core.errors import CorruptTape
from playhead_core.facts import Content, digest_of
from playhead_receiver.storage import Batch, open_store


def test_a_content_that_extends_itself_is_reported(tmp_path: Path):
    made = HandMade().start()
    made.chat(request=b"own base")
    digest = digest_of(b"own base")
    endless = Content(digest, 1 << 50, b"x", digest, 1 << 40)
    facts = [
        msgspec.structs.replace(one, body=endless) if one.body and one.body.digest == digest else one
        for one in made.facts
    ]
    store = open_store(tmp_path)
    try:
        store.commit(Batch(made.spans, facts, {}))
        with pytest.raises(CorruptTape, match="extends itself"):
            store.tape(made.instance).read(endless)
    finally:
        store.close()
