"""One function keeps every path that something brings below its folder."""

from pathlib import Path

import pytest

from playhead_core.errors import PathOutside
from playhead_core.file_names import below, inside

OUT = ("../x", "a/../../x", "./../../x", "/x", "//x", "..", ".", "", "a/..", "x\0y")


@pytest.mark.parametrize("name", OUT)
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str):
    assert not below(name)
    with pytest.raises(PathOutside, match="does not lie below"):
        inside(tmp_path / "in", name)


@pytest.mark.parametrize("link", ["..", "/", "/etc", "../in-not"])
def test_a_link_that_leads_out_is_refused(tmp_path: Path, link: str):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a").symlink_to(link)
    with pytest.raises(PathOutside):
        inside(folder, "a/x")
    assert inside(folder, "a") == folder / "a"


def test_a_link_that_stays_inside_is_followed(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert inside(tmp_path, "link/x/y") == tmp_path / "real/x/y"
    assert inside(tmp_path, ".//x/../y") == tmp_path / "y"
