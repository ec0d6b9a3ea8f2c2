"""Which lines of printed tracebacks count: made by Python itself, compared as a replay is."""

import subprocess
import sys
import textwrap

import pytest

from playhead_core.normalize.tracebacks import counted, differing

TRANSPORT = """
    import urllib.error
    def connect():
        try:
            raise OSError(111, "Connection refused")
        except OSError as error:
            raise urllib.error.URLError("no way") from error
    def request():
        connect()
    """
PLAYED = """
    import urllib.error
    def request():
        raise urllib.error.URLError("no way")
    """


def printed(folder, library, program):
    """What a program says on stderr that uses ``library`` as an installed one."""
    site = folder / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True, exist_ok=True)
    (site / "transport.py").write_text(textwrap.dedent(library))
    script = folder / "program.py"
    script.write_text(f"import sys\nsys.path.insert(0, {str(site)!r})\n{textwrap.dedent(program)}")
    words = [sys.executable, "-W", "error", str(script)]
    return subprocess.run(words, capture_output=True).stderr


def text(data):
    return b"".join(line.text for line in counted(data)).decode()


PROGRAMS = {
    "unhandled": "import transport\ndef f():\n    transport.request()\nf()",
    "raised anew": """
        import transport
        try:
            transport.request()
        except Exception as error:
            raise ValueError("my own\\nin two lines") from error
        """,
    "while handled": """
        import transport
        try:
            transport.request()
        except Exception:
            {}["key"]
        """,
    "logged, and goes on": """
        import logging, sys, transport
        for n in range(3):
            try:
                transport.request()
            except Exception:
                logging.exception("attempt %d", n)
        print("at last", file=sys.stderr)
        """,
    "in a thread": """
        import threading, transport
        thread = threading.Thread(target=transport.request)
        thread.start()
        thread.join()
        """,
    "of a group": """
        import asyncio, transport
        async def job(n):
            if n:
                raise KeyError(n)
            transport.request()
        async def main():
            async with asyncio.TaskGroup() as group:
                for n in range(3):
                    group.create_task(job(n))
        asyncio.run(main())
        """,
    "deep": """
        import transport
        def again(n):
            again(n - 1) if n else transport.request()
        again(50)
        """,
    "with a note": """
        import transport
        try:
            transport.request()
        except Exception as error:
            error.add_note("the above exception is noted")
            raise
        """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_frames_of_the_transport_do_not_count(name, tmp_path):
    recorded, now = (printed(tmp_path, one, PROGRAMS[name]) for one in (TRANSPORT, PLAYED))
    assert recorded != now
    assert b"Connection refused" in recorded
    assert differing(recorded, now) is None
    assert "program.py" in text(recorded) or name == "in a thread"
    assert "transport.py" not in text(recorded)
    assert "no way" in text(recorded)


@pytest.mark.parametrize(
    ("one", "other", "line"),
    [
        ("transport.request()", "x = 1; transport.request()", "x = 1; transport.request()"),
        ("transport.request()", "raise ValueError('no way')", "raise ValueError('no way')"),
        (
            "try:\n    transport.request()\nexcept OSError as e: raise ValueError('a') from e",
            "try:\n    transport.request()\nexcept OSError as e: raise ValueError('b') from e",
            "b",
        ),
    ],
)
def test_what_the_program_does_otherwise_is_seen(one, other, line, tmp_path):
    sides = [printed(tmp_path, TRANSPORT, f"import transport\n{text}") for text in (one, other)]
    found = differing(*sides)
    assert found is not None
    assert line in sides[1][found[2] :].decode() or sides[1][: found[2]].decode().endswith("line ")


def test_another_exception_of_the_library_is_seen(tmp_path):
    program = PROGRAMS["unhandled"]
    sides = [printed(tmp_path, one, program) for one in (TRANSPORT, PLAYED.replace("no way", "no use"))]
    found = differing(*sides)
    assert found is not None
    assert sides[1][found[2] :].startswith(b"use")


def test_what_is_no_traceback_counts_as_it_is():
    for said in (
        b"",
        b"a\nb",
        b'  File "/usr/lib/python3.11/x.py", line 1, in f\n    f()\n',
        b"Stack (most recent call last):\n" + b'  File "/usr/lib/python3.11/x.py", line 1, in f\n',
        b"\x80\xff\n\n Traceback (most recent call last): no\n",
    ):
        assert b"".join(line.text for line in counted(said)) == said
    assert differing(b"a\nbc\n", b"a\nbd\n") == (b"a\nbc\n", b"a\nbd\n", 3)
    assert differing(b"a\n", b"a\nmore\n") == (b"a\n", b"a\nmore\n", 2)
    assert differing(b"a\nmore\n", b"a\n") == (b"a\nmore\n", b"a\n", 2)


def test_a_syntax_error_keeps_the_line_it_is_about(tmp_path):
    said = printed(tmp_path, PLAYED, "compile('1 +', '/usr/lib/python3.11/made.py', 'exec')")
    assert "    1 +\n" in text(said)
    assert "SyntaxError" in text(said)


def test_a_cause_is_not_looked_for_far_away():
    """Whoever prints the words of a chain takes nothing else out of the comparison."""
    said = b'Traceback (most recent call last):\n  File "/usr/lib/python3.11/x.py", line 1, in f\nE: m\n'
    said += b"said\n" * 300
    said += b"\nDuring handling of the above exception, another exception occurred:\n\n"
    assert text(said).count("said\n") == 300


def test_colours_are_looked_through():
    said = b'Traceback (most recent call last):\n  File \x1b[35m"/x/site-packages/y.py"\x1b[0m, '
    said += b"line \x1b[35m1\x1b[0m, in \x1b[35mf\x1b[0m\n    g()\n\x1b[1;35mE\x1b[0m: m\n"
    assert text(said) == "Traceback (most recent call last):\n\x1b[1;35mE\x1b[0m: m\n"


def test_ten_megabytes_take_no_long_time():
    said = b'Traceback (most recent call last):\n  File "/usr/lib/python3.11/x.py", line 1, in f\nE: m\n'
    said += b"\nDuring handling of the above exception, another exception occurred:\n\n"
    assert differing(said * 50_000 + b"a\n", said * 50_000 + b"b\n") is not None
