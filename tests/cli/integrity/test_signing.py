"""A tape is signed, another environment checks that, and no change of the file goes unnoticed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from support.starting.cli import CommandLine, refund, store_run
from support.tapes.batches import facts_of
from support.tapes.handmade import INSTANCE

from playhead_core.facts import Fact
from playhead_core.integrity import (
    Link,
    LinkStatement,
    Signature,
    What,
    first_link,
    next_link,
    signed_of,
)
from playhead_core.tape.frames import CHAINED, Footer, Record, SpanRecord, encode, read_whole
from playhead_receiver.integrity.signing import fingerprint, public_key
from playhead_receiver.storage import Batch, open_store
from playhead_replay.tape_files.integrity import inspect
from playhead_replay.tape_files.tape_file import read_tape_file

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
STREAM = b"s" * 16


def write_key(
    folder: Path,
    name: str,
    key: Ed25519PrivateKey = KEY,
    how: PrivateFormat = PrivateFormat.OpenSSH,
    passphrase: KeySerializationEncryption | None = None,
) -> Path:
    private, public = folder / name, folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, how, passphrase or NoEncryption()))
    ssh = how == PrivateFormat.OpenSSH
    public.write_bytes(
        key.public_key().public_bytes(
            Encoding.OpenSSH if ssh else Encoding.PEM,
            PublicFormat.OpenSSH if ssh else PublicFormat.SubjectPublicKeyInfo,
        )
    )
    return private


@pytest.fixture
def signed(playhead: CommandLine, tmp_path: Path) -> Path:
    """A run that was exported and signed; its key lies beside it."""
    store_run(playhead.data_dir, refund())
    path = tmp_path / "refund.tape"
    key = write_key(tmp_path, "key")
    assert playhead("export", "refund-1", "-o", str(path), "--sign", str(key)).status == 0
    return path


def records_of(path: Path) -> list[Record]:
    return [one for one in read_whole(path.read_bytes()) if not isinstance(one, Footer)]


def write(path: Path, records: list[Record]) -> None:
    facts = sum(isinstance(one, Fact) for one in records)
    spans = sum(isinstance(one, SpanRecord) for one in records)
    links = sum(isinstance(one, Link | Signature) for one in records)
    footer = Footer(facts, spans, links)
    path.write_bytes(CHAINED + b"".join(map(encode, [*records, footer])))


def problems(playhead: CommandLine, path: Path, *more: str) -> list[str]:
    found = playhead("verify", str(path), "--json", *more)
    said = [one["problem"] for one in json.loads(found.out)["findings"]]
    assert found.status == (1 if said else 0)
    return said


@pytest.mark.parametrize("how", [PrivateFormat.OpenSSH, PrivateFormat.PKCS8])
@pytest.mark.parametrize("ending", ["tape", "tape.gz"])
def test_a_signed_tape_is_checked_elsewhere(
    playhead: CommandLine, tmp_path: Path, how: PrivateFormat, ending: str
):
    store_run(playhead.data_dir, refund())
    path, key = tmp_path / f"run.{ending}", write_key(tmp_path, "key", how=how)
    assert playhead("export", "refund-1", "-o", str(path), "--sign", str(key)).status == 0
    other = tmp_path / "other"
    other.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "playhead_cli", "verify", str(path), "--key", f"{key}.pub"],
        capture_output=True,
        text=True,
        cwd=other,
        env={"PATH": os.environ["PATH"], "HOME": str(other)},
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert f"with {fingerprint(KEY.public_key().public_bytes_raw())}\n" in done.stderr
    assert "matches its hash chain" in done.stderr


def test_a_signature_covers_heads_run_and_counts(signed: Path):
    found = read_tape_file(signed)
    assert found.signature is not None
    said = signed_of(found.signature)
    (process,) = inspect(found)
    assert said.heads == [(INSTANCE, process.links, process.head)]
    assert (said.facts, said.spans) == (len(refund().facts), len(refund().spans))
    assert said.trace_id == refund().trace_id


def test_without_a_key_nobody_knows_whose_it_is(playhead: CommandLine, signed: Path, tmp_path: Path):
    found = playhead("verify", str(signed))
    assert found.status == 0
    assert "whose key that is only --key can tell" in found.err
    other = write_key(tmp_path, "other", Ed25519PrivateKey.generate())
    (problem,) = problems(playhead, signed, "--key", f"{other}.pub")
    assert problem.startswith("it is signed with another key: SHA256:")
    line = (tmp_path / "key.pub").read_text()
    assert problems(playhead, signed, "--key", line) == []


def test_the_fingerprint_is_that_of_openssh():
    line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
    assert fingerprint(public_key(line)) == "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"


def test_any_byte_that_is_another_is_noticed(playhead: CommandLine, signed: Path, tmp_path: Path):
    data, chance, copy = signed.read_bytes(), random.Random(1), tmp_path / "copy.tape"
    for _ in range(60):
        at = chance.randrange(len(data))
        copy.write_bytes(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])
        assert playhead("verify", str(copy), "--key", str(tmp_path / "key.pub")).status != 0, at


def test_who_makes_the_chain_anew_is_found_out_by_the_signature(
    playhead: CommandLine, signed: Path, tmp_path: Path
):
    records = records_of(signed)
    facts = [one for one in records if isinstance(one, Fact)]
    facts[5] = msgspec.structs.replace(facts[5], time_ns=1)
    with closing(open_store(tmp_path / "forged")) as store:
        store.commit(Batch(facts=facts))
        forged = store.chain(INSTANCE)
    rest = [one for one in records if not isinstance(one, Fact | Link)]
    signature = next(one for one in rest if isinstance(one, Signature))
    plain = [one for one in rest if one is not signature]
    copy = tmp_path / "copy.tape"
    write(copy, [*plain[:1], *facts, *plain[1:], *forged])
    assert problems(playhead, copy) == []
    assert problems(playhead, copy, "--key", str(tmp_path / "key.pub")) == ["it is not signed"]
    write(copy, [*plain[:1], *facts, *plain[1:], *forged, signature])
    assert problems(playhead, copy) == [
        "it was changed after it was signed",
        "its chains are not those that were signed",
    ]


def test_a_span_that_is_missing_is_noticed(playhead: CommandLine, signed: Path, tmp_path: Path):
    records = records_of(signed)
    place = next(at for at, one in enumerate(records) if isinstance(one, SpanRecord))
    copy = tmp_path / "copy.tape"
    write(copy, [*records[:place], *records[place + 1 :]])
    assert problems(playhead, copy) == [
        "it was changed after it was signed",
        "it has not as many facts and spans as were signed",
    ]


def test_nothing_stands_behind_a_signature(playhead: CommandLine, signed: Path, tmp_path: Path):
    records, copy = records_of(signed), tmp_path / "copy.tape"
    before = first_link(STREAM)
    (fact,) = facts_of(STREAM, [0])
    more = next_link(before, STREAM, LinkStatement(What.CAME, [(0, 0)], 1), bytes(32))
    for one in (fact, more):
        write(copy, [*records, one])
        assert "something stands behind its signature" in playhead("verify", str(copy)).err


def test_a_signature_of_nonsense_is_refused(playhead: CommandLine, signed: Path, tmp_path: Path):
    *rest, signature = records_of(signed)
    assert isinstance(signature, Signature)
    copy = tmp_path / "copy.tape"
    for changed in (
        msgspec.structs.replace(signature, scheme="none"),
        msgspec.structs.replace(signature, key=b"short"),
        msgspec.structs.replace(signature, signature=b""),
        msgspec.structs.replace(signature, said=b"\xc1"),
    ):
        write(copy, [*rest, changed])
        assert "its signature does not verify" in problems(playhead, copy)
        assert playhead("verify", str(copy)).status == 1


def test_each_key_that_is_none_is_told(playhead: CommandLine, signed: Path, tmp_path: Path):
    guarded = write_key(tmp_path, "guarded", passphrase=BestAvailableEncryption(b"secret"))
    rsa = tmp_path / "rsa"
    rsa.write_bytes(
        generate_private_key(65537, 2048).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        )
    )
    (tmp_path / "notes").write_text("no key")
    for name, said in (
        ("guarded", "has a passphrase, and there is no terminal"),
        ("rsa", "is not a key of Ed25519"),
        ("notes", "holds no private key that can be read"),
        ("nothing", "cannot be read"),
    ):
        refused = playhead("export", "refund-1", "--sign", str(tmp_path / name))
        assert refused.status == 2 and said in refused.err, name
    assert guarded.exists()
    for name, said in (("key", "is a private key"), ("notes", "holds no public key that can be read")):
        assert said in playhead("verify", str(signed), "--key", str(tmp_path / name)).err
    refused = playhead("export", "refund-1", "-o", "x.jsonl", "--sign", str(tmp_path / "key"))
    assert "only a tape can be signed" in refused.err
    assert "--key needs a FILE" in playhead("verify", "--key", str(tmp_path / "key.pub")).err


def test_a_run_without_a_chain_can_be_signed(playhead: CommandLine, tmp_path: Path):
    old = Path(__file__).parents[2] / "replay" / "tape_files" / "fixtures" / "version-1.tape"
    path, key = tmp_path / "new.tape", write_key(tmp_path, "key")
    assert playhead("export", str(old), "-o", str(path), "--sign", str(key)).status == 0
    found = playhead("verify", str(path), "--key", f"{key}.pub")
    assert found.status == 0
    assert "not chained" in found.err and "signed 20" in found.err
