"""What a tape tells of files is put back in the copy that a fork works in, and nowhere else."""

from pathlib import Path

import pytest
from support.tapes.handmade import HandMade

from playhead_core.errors import PathOutside
from playhead_core.facts import Content
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_instrumentation.libraries.files.changes import Change
from playhead_instrumentation.libraries.files.workspace import Names, Workspace
from playhead_replay.forks.workspace import copied, folder_of_fork, settled
from playhead_semconv import attributes as a
from playhead_semconv import events as e


def tape(*effects: tuple[str, str, bytes | None]) -> MemoryTape:
    made = HandMade().start()
    for kind, target, data in effects:
        attributes = {a.PLAYHEAD_EFFECT_KIND: kind, a.PLAYHEAD_EFFECT_TARGET: target}
        made.fact(
            e.PLAYHEAD_EFFECT,
            attributes=attributes,
            body=None if data is None else Content.of(data),
        )
    return MemoryTape(made.facts)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "agent"
    folder.mkdir()
    (tmp_path / "canary").mkdir()
    (tmp_path / "canary" / "kept").write_text("kept")
    return folder


def untouched(tmp_path: Path) -> bool:
    canary = tmp_path / "canary"
    return [(one.name, one.read_text()) for one in canary.iterdir()] == [("kept", "kept")]


@pytest.mark.parametrize("kind", ["file.write", "file.remove"])
@pytest.mark.parametrize("way", [".//{0}", "./../../../canary/kept", "./a/../../../../canary/kept"])
def test_a_target_that_leads_out_is_refused(tmp_path: Path, folder: Path, kind: str, way: str):
    target = way.format(tmp_path / "canary" / "kept")
    whole = tape((kind, target, b"bad" if kind == "file.write" else None))
    if way.startswith(".//"):
        target = "./" + str(tmp_path / "canary" / "kept")
        whole = tape((kind, "./" + target[2:], b"bad" if kind == "file.write" else None))
    with pytest.raises(PathOutside):
        copied(folder, whole, whole, tmp_path / "data")
    assert untouched(tmp_path)
    assert list((tmp_path / "data" / "forks").iterdir()) == []


@pytest.mark.parametrize("kind", ["file.write", "file.remove"])
def test_a_link_that_leads_out_is_not_followed(tmp_path: Path, folder: Path, kind: str):
    (folder / "shared").symlink_to(tmp_path / "canary")
    (folder / "one").symlink_to(tmp_path / "canary" / "kept")
    data = b"bad" if kind == "file.write" else None
    whole = tape((kind, "./shared/kept", data), (kind, "./one", data), ("file.write", "./two", b"2"))
    copy = copied(folder, whole, whole, tmp_path / "data")
    assert untouched(tmp_path)
    assert (copy / "two").read_bytes() == b"2"
    if data:
        assert (copy / "one").read_bytes() == b"bad" and not (copy / "one").is_symlink()
    else:
        assert not (copy / "one").is_symlink()


def test_a_link_that_stays_inside_is_written_through(tmp_path: Path, folder: Path):
    (folder / "real").write_text("old")
    (folder / "latest").symlink_to("real")
    whole = tape(("file.write", "./latest", b"new"))
    copy = copied(folder, whole, whole, tmp_path / "data")
    assert (copy / "real").read_bytes() == b"new" and (copy / "latest").is_symlink()


def test_the_data_folder_is_not_copied_through_another_path(tmp_path: Path, folder: Path):
    (folder / "own").mkdir()
    (folder / "own" / "store.sqlite").write_bytes(b"locked")
    (tmp_path / "link").symlink_to(folder)
    whole = tape()
    copy = copied(folder, whole, whole, tmp_path / "link" / "own")
    assert not (copy / "own").exists()


def test_the_name_of_a_fork_is_a_folder_of_its_own(tmp_path: Path, folder: Path):
    (tmp_path / "forks" / "x").mkdir(parents=True)
    for name in ("..", "../agent", str(folder)):
        with pytest.raises(PathOutside):
            folder_of_fork(tmp_path, name)
        with pytest.raises(PathOutside):
            settled(tmp_path / "forks" / "x", {"": (0, 0)}, name)


def test_what_a_child_changed_stays_in_the_scratch_folder(tmp_path: Path, folder: Path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    workspace = Workspace(Names(str(folder), str(tmp_path / "home")), [str(folder)]).placed(
        lambda path: f"{scratch}{path}", lambda path: None
    )
    canary = tmp_path / "canary"
    up = "../" * 30
    changes = [
        Change(f"{up}{str(canary)[1:]}/new", "written", 0o100644, b"bad"),
        Change(f"./{up}{str(canary)[1:]}/kept", "deleted"),
        Change("./way", "link", 0o120777, bytes(canary)),
        Change("./way/new", "written", 0o100644, b"bad"),
        Change("./way/kept", "deleted"),
        Change("./way", "mode", 0o40000),
        Change("./plain", "written", 0o100644, b"good"),
    ]
    workspace.apply(changes)
    assert untouched(tmp_path) and canary.stat().st_mode & 0o777
    assert Path(f"{scratch}{folder}/plain").read_bytes() == b"good"
