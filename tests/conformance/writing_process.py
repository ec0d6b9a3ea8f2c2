"""A process that commits without end and says what was acknowledged: ``ENGINE PLACE INSTANCE LANES``.

Each of LANES threads writes an instance of its own: a batch is three facts and one span. After each
commit a line ``thread first last span`` goes to stdout, so what stands there was acknowledged.
"""

import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from conformance.engines import ENGINES
from support.tapes.batches import facts_of, span_of

from playhead_receiver.storage import Batch


def main() -> None:
    engine, place, first_instance, threads = sys.argv[1:]
    store = ENGINES[engine].writer(Path(place))
    saying = threading.Lock()

    def write(number: int) -> None:
        instance = bytes([int(first_instance) + number]) * 16
        beat = 0
        while True:
            facts = facts_of(instance, range(beat * 3, beat * 3 + 3))
            span = span_of(instance, beat + 1, text="x" * 3000)
            store.commit(Batch(spans=[span], facts=facts))
            with saying:
                sys.stdout.write(f"{number} {facts[0].seq} {facts[-1].seq} {span.span_id.hex()}\n")
                sys.stdout.flush()
            beat += 1

    for number in range(int(threads)):
        threading.Thread(target=write, args=(number,), daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
