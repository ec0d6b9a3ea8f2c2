"""Takes the pictures of the pages in `docs/pictures`, of the runs of `playhead demo`: make pictures."""

from __future__ import annotations

import tempfile
from pathlib import Path

from support.pages.chromium import chromium
from support.starting.home import Home

from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver

FOLDER = Path(__file__).parent / "pictures"
LONGEST_S = 600
PICTURES = {
    "runs": ("/", ".chart canvas"),
    "run": ("/?run=weather_agent-1&rows=tree&step=4", ".detail .said"),
    "findings": ("/?run=refund_agent-1&step=findings", ".findings .card"),
    "flow": ("/?view=flow", ".graph .node"),
    "transcript": ("/?view=transcript&run=weather_agent-1", "article"),
    "playhead": ("/?view=playhead&run=research_agent-1&after=4", "main .two"),
}
"""Of each picture: the address, and what is there when it is shown."""


def main() -> None:
    """Record the demonstration, and take the pictures."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        home = Home(Path(place), {})
        demo = home.start("demo", env=home.bare)
        said, problem = demo.communicate(timeout=LONGEST_S)
        assert demo.returncode == 0, said + problem
        addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
        with (
            Receiver(home.data_dir, Configuration(addresses)) as receiver,
            chromium(home.folder / "profile") as browser,
            browser.tab() as page,
        ):
            for name, (address, until) in PICTURES.items():
                page.open(receiver.query_endpoint + address, until)
                page.wait("!document.body.innerText.includes('loading')")
                page.photograph(FOLDER / f"{name}.webp")
                print(f"{name}.webp: {(FOLDER / f'{name}.webp').stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
