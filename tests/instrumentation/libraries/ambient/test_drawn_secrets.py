"""What `secrets`, `ssl` and libraries of cryptography draw is nowhere, unless somebody chose so."""

from __future__ import annotations

import base64
import itertools
import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from support.scanning import texts
from support.servers.tls import IDENTITY
from support.starting.home import Home
from support.starting.programs import BIN, Program
from support.tapes.spools import forget

from playhead_core.boundaries import LEVELS
from playhead_core.settings import Settings
from playhead_exporter.spool import SpoolFolders
from playhead_semconv import attributes as a
from playhead_semconv import events as e

DRAWS = """
import base64, functools, json, os, random, secrets, ssl, string, sys
from cryptography import x509
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives import serialization as form

out, keylog, identity = int(sys.argv[1]), f"/dev/fd/{sys.argv[2]}", sys.argv[3]


def shake_hands():
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.load_cert_chain(identity)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.keylog_filename = keylog
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = client.wrap_bio(back, there), server.wrap_bio(there, back, server_side=True)
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                pass


def raw(key):
    return key.private_bytes(form.Encoding.DER, form.PrivateFormat.PKCS8, form.NoEncryption())


system, letters = secrets.SystemRandom(), string.ascii_letters
fernet = Fernet.generate_key()
drawn = [
    secrets.token_bytes(24),
    bytes.fromhex(secrets.token_hex(24)),
    base64.urlsafe_b64decode(secrets.token_urlsafe(24)),
    "".join(secrets.choice(letters) for _ in range(24)).encode(),
    b"".join(secrets.choice([bytes([n]) for n in range(256)]) for _ in range(24)),
    "".join(random.SystemRandom().choices(letters, k=24)).encode(),
    system.randbytes(24),
    system.getrandbits(192).to_bytes(24, "big"),
    secrets.randbits(192).to_bytes(24, "big"),
    secrets.randbelow(1 << 190).to_bytes(24, "big"),
    ssl.RAND_bytes(24),
    base64.urlsafe_b64decode(fernet),
    Fernet(fernet).encrypt(b"text")[12:34],
    AESGCM.generate_key(256),
    ChaCha20Poly1305.generate_key(),
    x509.random_serial_number().to_bytes(20, "big"),
    ed25519.Ed25519PrivateKey.generate().private_bytes_raw(),
    raw(ec.generate_private_key(ec.SECP256R1()))[36:68],
    raw(rsa.generate_private_key(65537, 1024))[200:260],
    # As compiled code does it: nothing here is seen to draw.
    *map(os.urandom, [24]),
    functools.partial(os.urandom, 24)(),
]
shake_hands()
os.write(out, json.dumps([one.hex() for one in drawn]).encode())
print("done")
"""

DRAWN = 21

READ = b"entropy/os.urandom"
"""What a draw is called on the tape."""


def run(home: Home, *words: str, **environ: str) -> list[bytes]:
    """What the program drew; it says so where nobody records."""
    (home.folder / "agent.py").write_text(DRAWS, "utf-8")
    identity = home.folder.parent / "identity.pem"
    identity.write_text(IDENTITY)
    with tempfile.TemporaryFile(dir="/dev/shm") as out, tempfile.TemporaryFile(dir="/dev/shm") as log:
        descriptors = out.fileno(), log.fileno()
        done = subprocess.run(
            [*words, *map(str, descriptors), str(identity)],
            cwd=home.folder,
            env={**home.environ, **environ},
            pass_fds=descriptors,
            capture_output=True,
            text=True,
            timeout=90,
        )
        assert (done.returncode, done.stdout[:5]) == (0, "done\n"), done.stderr
        out.seek(0), log.seek(0)
        drawn = [bytes.fromhex(one) for one in json.loads(out.read())]
        # NAME CLIENT_RANDOM SECRET, of which the second goes over the wire.
        lines = [line.split() for line in log.read().decode().splitlines() if line[:1] != "#"]
        secrets = [bytes.fromhex(secret) for _, _, secret in lines]
    assert len(drawn) == DRAWN and len(secrets) >= 4
    return [*drawn, *secrets]


def forms(value: bytes) -> set[bytes]:
    """How a value may be written."""
    return {
        value,
        value.hex().encode(),
        value.hex().upper().encode(),
        base64.b64encode(value).rstrip(b"="),
        base64.urlsafe_b64encode(value).rstrip(b"="),
        value[::-1],  # an integer, the other way round
        str(int.from_bytes(value)).encode(),
    }


def found(folder: Path, values: list[bytes]) -> list[str]:
    """Where one of them stands."""
    wanted = {form: number for number, value in enumerate(values) for form in forms(value)}
    places = list(texts(folder))
    assert places
    return [f"{wanted[one]} in {place}" for place, text in places for one in wanted if one in text]


def spooled(home: Home) -> Path:
    """A folder with a copy of what is in the spool, the part in shared memory included."""
    settings = Settings(spool_dir=str(home.folder / "spool"))
    places, copy = SpoolFolders.of(settings), home.folder / "copied"
    copy.mkdir(exist_ok=True)
    for instance in places.instances():
        for folder in (places.active_home(instance), places.home(instance)):
            for path in folder.glob("*"):
                (copy / f"{folder.parent.name}-{path.name}").write_bytes(path.read_bytes())
    forget(settings)
    return home.folder


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    return Home(folder, {"PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"})


INSTRUMENTED = ("opentelemetry-instrument", "python", "agent.py")
NOBODY = {"PLAYHEAD_ENDPOINT": "http://127.0.0.1:9", "PLAYHEAD_ENDPOINT_KIND": "other"}


SHORT = {("causal", "metadata"), ("strict", "full")}
HOW = [
    pytest.param(*how, marks=() if how in SHORT else pytest.mark.acceptance, id="-".join(how))
    for how in itertools.product(LEVELS, ("full", "metadata"))
]


@pytest.mark.parametrize(("level", "content"), HOW)
def test_nowhere_under_opentelemetry_instrument(home, level, content):
    chosen = {"PLAYHEAD_LEVEL": level, "PLAYHEAD_CONTENT": content}
    values = run(home, *INSTRUMENTED, **NOBODY, **chosen)
    assert found(spooled(home), [READ, *values]) == []


@pytest.mark.parametrize(("level", "content"), HOW)
def test_nowhere_under_record(home, level, content):
    words = home.words("record", "--level", level, "agent.py")
    values = run(home, *words, PLAYHEAD_CONTENT=content)
    for form in ("tape", "otlp"):
        home.playhead("export", "last", "--format", form, "-o", str(home.folder / f"out.{form}"))
        assert (home.folder / f"out.{form}").stat().st_size
    assert found(home.folder, [READ, *values]) == []


def test_found_where_somebody_chose_so(home):
    chosen = {"PLAYHEAD_LEVEL": "causal", "PLAYHEAD_BOUNDARIES": "+secrets"}
    values = run(home, *INSTRUMENTED, **NOBODY, **chosen)
    places = found(spooled(home), values)
    assert {int(place.partition(" ")[0]) for place in places} >= {0, 1, 6, 11}


def test_no_entropy_at_all_without_content(home):
    source = "import os, sys, json, uuid; value = os.urandom(24); one = uuid.uuid4()\n"
    (home.folder / "agent.py").write_text(source + "os.write(int(sys.argv[1]), value + one.bytes)\n")
    for content, there in (("metadata", []), ("full", [0, 1])):
        with tempfile.TemporaryFile(dir="/dev/shm") as out:
            subprocess.run(
                [*INSTRUMENTED, str(out.fileno())],
                cwd=home.folder,
                env={**home.environ, **NOBODY, "PLAYHEAD_LEVEL": "strict", "PLAYHEAD_CONTENT": content},
                pass_fds=[out.fileno()],
                check=True,
            )
            out.seek(0)
            drawn = out.read()
        # The version of a uuid takes the place of a few bits.
        places = found(spooled(home), [drawn[:24], drawn[33:]])
        assert sorted({int(place.partition(" ")[0]) for place in places}) == there


DIRECT = """
import os, random
from os import urandom as draw
import cryptography

class Holder:
    def urandom(self, size): return b""

def key(size, more=b""): return os.urandom(size)

own = random.SystemRandom
class Dice(own): pass

one = os.urandom(3)                                 # recorded
two = key(4, more=os.urandom(5))                    # both
three = [os.urandom(size) for size in (6, 7)]       # both
four = list(map(os.urandom, [8])), os.urandom(9)    # the second
Dice().random(), Dice().choice("ab"), draw(10), Holder().urandom(11)
"""


def test_the_draws_that_code_is_seen_to_make_are_recorded(tmp_path):
    folder = tmp_path / "program"
    folder.mkdir()
    program = Program.of(folder, DIRECT, PLAYHEAD_LEVEL="causal")
    try:
        assert program.recorded().returncode == 0
        facts = program.facts(e.PLAYHEAD_READ)
    finally:
        program.close()
    drawn = [fact.body for fact in facts if fact.attributes[a.PLAYHEAD_READ_KIND].encode() == READ]
    # Two bytes say that it is bytes, and how many.
    assert [body.size - 2 for body in drawn] == [3, 5, 4, 6, 7, 9]
