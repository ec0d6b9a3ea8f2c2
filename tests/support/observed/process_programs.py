"""Programs that start child processes, and what they observe."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import Any

import uvloop

LONG = 3_000_000


def run_text() -> Any:
    done = subprocess.run(["echo", "grüße"], capture_output=True, text=True, encoding="utf-8")
    return done.args, done.returncode, done.stdout, done.stderr


def run_failing() -> Any:
    try:
        subprocess.run("echo said >&2; exit 3", shell=True, check=True, stderr=subprocess.PIPE)
    except subprocess.CalledProcessError as error:
        return error.returncode, error.cmd, error.stderr
    return None


def both_streams_in_one() -> Any:
    return subprocess.check_output(["sh", "-c", "echo a; echo b >&2"], stderr=subprocess.STDOUT)


def not_there() -> Any:
    seen: list[Any] = []
    for words, more in (
        (["no-such-program"], {}),
        (["/etc/passwd"], {}),
        (["true"], {"cwd": "/no/where"}),
    ):
        try:
            subprocess.run(words, **more)
        except OSError as error:
            seen.append((type(error).__name__, error.errno, error.strerror, error.filename))
    return seen


def expired() -> Any:
    try:
        subprocess.run(["sh", "-c", "echo before; exec sleep 60"], capture_output=True, timeout=0.3)
    except subprocess.TimeoutExpired as error:
        return error.cmd, error.timeout, error.output, error.stderr
    return None


def expired_without_pipes() -> Any:
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            child.wait(timeout=0.05)
        except subprocess.TimeoutExpired as error:
            first = str(error)
        child.terminate()
        return first, child.wait(), child.pid


def much_both_ways() -> Any:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, err = child.communicate(b"x" * LONG)
    return len(out), err, child.returncode


def spoken_with() -> Any:
    seen: list[str] = []
    with subprocess.Popen(
        ["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as child:
        assert child.stdin is not None and child.stdout is not None
        for number in range(4):
            child.stdin.write(f"line {number}\n")
            seen.append(child.stdout.readline())
        child.stdin.close()
        seen += list(child.stdout)
    return seen, child.returncode, type(child.stdout).__name__


def read_line_by_line() -> Any:
    with subprocess.Popen(["printf", "a\\nb\\nc"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        return [line for line in child.stdout], child.wait()


def closed_early() -> Any:
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        first = child.stdout.readline()
        child.stdout.close()
        return first, child.wait()


def chained() -> Any:
    one = subprocess.Popen(["printf", "b\\na\\n"], stdout=subprocess.PIPE)
    two = subprocess.Popen(["sort"], stdin=one.stdout, stdout=subprocess.PIPE)
    assert one.stdout is not None
    one.stdout.close()
    return two.communicate(), one.wait()


def polled() -> Any:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    first = child.poll()
    assert child.stdin is not None
    child.stdin.close()
    return first, child.wait(), child.poll()


def killed() -> Any:
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    os.killpg(os.getpgid(child.pid), signal.SIGKILL)
    code = child.wait()
    try:
        os.kill(child.pid, 0)
    except ProcessLookupError as error:
        return code, str(error)
    return code


def into_a_file() -> Any:
    with tempfile.TemporaryFile() as file:
        file.write(b"first ")
        file.flush()
        code = subprocess.call(["echo", "to a file"], stdout=file, stderr=subprocess.DEVNULL)
        place = file.tell()
        file.seek(0)
        return code, place, file.read()


def from_a_file() -> Any:
    with tempfile.TemporaryFile() as file:
        file.write(b"content")
        file.seek(0)
        return subprocess.check_output(["cat"], stdin=file)


def broken_pipe() -> Any:
    child = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    code = child.wait()
    assert child.stdin is not None
    try:
        child.stdin.write(b"x" * 100_000)
        child.stdin.flush()
    except BrokenPipeError as error:
        try:
            child.stdin.close()
        except BrokenPipeError:
            pass
        return code, error.errno
    return code


def closes_its_stdin() -> Any:
    words = ["sh", "-c", "exec <&-; sleep 0.05; echo lives"]
    return subprocess.run(words, input=b"in" * LONG, capture_output=True, check=True).stdout


def selected() -> Any:
    child = subprocess.Popen(
        ["sh", "-c", "echo one; sleep 0.05; echo two >&2"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None and child.stderr is not None
    names = {child.stdout: "stdout", child.stderr: "stderr"}
    seen: list[Any] = []
    while names:
        for file in select.select(list(names), [], [])[0]:
            data = os.read(file.fileno(), 100)
            seen.append((names[file], data))
            if not data:
                del names[file]
    return [one for one in seen if one[1]], child.wait()


def read_by_threads() -> Any:
    child = subprocess.Popen(
        ["sh", "-c", "echo out; echo err >&2"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    seen: dict[str, bytes] = {}

    def read(name: str, file: Any) -> None:
        seen[name] = file.read()

    threads = [
        threading.Thread(target=read, args=pair) for pair in (("o", child.stdout), ("e", child.stderr))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(seen.items()), child.wait()


def through_os() -> Any:
    with os.popen("echo from popen; exit 2") as file:
        said = file.read()
    closed = os.popen("exit 2").close()
    pid = os.spawnvp(os.P_NOWAIT, "sh", ["sh", "-c", "exit 5"])
    spawned = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 6"], dict(os.environ))
    return (
        os.system("exit 3"),
        said,
        closed,
        os.spawnlp(os.P_WAIT, "sh", "sh", "-c", "exit 4"),
        (pid, os.waitpid(pid, 0)),
        (spawned, os.waitpid(spawned, 0)),
    )


def of_asyncio() -> Any:
    async def main() -> Any:
        child = await asyncio.create_subprocess_exec(
            "sh", "-c", "echo one; echo two >&2; cat; exit 4",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        return await child.communicate(b"in" * LONG), child.returncode, child.pid

    (out, err), code, pid = asyncio.run(main())
    return len(out), err, code, pid


def of_asyncio_spoken_with() -> Any:
    async def talk(who: str) -> Any:
        child = await asyncio.create_subprocess_shell("cat", stdin=-1, stdout=-1)
        assert child.stdin is not None and child.stdout is not None
        seen: list[bytes] = []
        for number in range(3):
            child.stdin.write(f"{who} {number}\n".encode())
            await child.stdin.drain()
            seen.append(await child.stdout.readline())
        child.stdin.close()
        return seen, await child.wait()

    async def main() -> Any:
        return await asyncio.gather(*(talk(who) for who in "abc"))

    return asyncio.run(main())


def of_asyncio_closes_its_stdin() -> Any:
    async def main() -> Any:
        child = await asyncio.create_subprocess_shell(
            "exec <&-; echo closed; sleep 0.05; echo lives", stdin=-1, stdout=-1
        )
        assert child.stdin is not None and child.stdout is not None
        line = await child.stdout.readline()
        try:
            child.stdin.write(b"in" * LONG)
            await child.stdin.drain()
        except ConnectionError as error:
            return line, type(error), await child.communicate()
        return line, await child.communicate()

    return asyncio.run(main())


def of_asyncio_closes_its_stdin_later() -> Any:
    async def main() -> Any:
        child = await asyncio.create_subprocess_shell(
            "read first; exec <&-; sleep 0.05; echo $first", stdin=-1, stdout=-1
        )
        assert child.stdin is not None
        try:
            child.stdin.write(b"one\n" + b"in" * LONG)
            await child.stdin.drain()
        except ConnectionError as error:
            return type(error), await child.communicate()
        return await child.communicate()

    return asyncio.run(main())


def of_asyncio_killed() -> Any:
    async def main() -> Any:
        child = await asyncio.create_subprocess_exec("sleep", "60")
        try:
            await asyncio.wait_for(child.wait(), 0.05)
        except TimeoutError:
            child.kill()
        try:
            await asyncio.create_subprocess_exec("no-such-program")
        except FileNotFoundError as error:
            return await child.wait(), str(error)

    return asyncio.run(main())


def of_uvloop() -> Any:
    async def main() -> Any:
        child = await asyncio.create_subprocess_exec(
            "sh", "-c", "echo one; echo two >&2; cat; exit 4",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        spoken = await asyncio.create_subprocess_shell("cat", stdin=-1, stdout=-1)
        assert spoken.stdin is not None and spoken.stdout is not None
        spoken.stdin.write(b"hello\n")
        line = await spoken.stdout.readline()
        spoken.terminate()
        return await child.communicate(b"in" * LONG), child.returncode, line, await spoken.wait()

    (out, err), *more = uvloop.run(main())
    return len(out), err, more


def on_a_terminal() -> Any:
    said: list[bytes] = []

    def read(number: int) -> bytes:
        said.append(os.read(number, 1024))
        return said[-1]

    status = pty.spawn(["sh", "-c", "test -t 1 && echo terminal; exit 3"], read)
    pid, number = pty.fork()
    if pid == 0:
        os.execlp("sh", "sh", "-c", "read word; echo got $word")
    os.write(number, b"something\n")
    heard = b""
    try:
        while piece := os.read(number, 1024):
            heard += piece
    except OSError as error:
        heard += f"errno {error.errno}".encode()
    os.close(number)
    return status, b"".join(said), pid, os.waitpid(pid, 0), heard


def python_child() -> Any:
    return subprocess.check_output([sys.executable, "-S", "-c", "print(6 * 7)"])


PROGRAMS: list[Callable[[], Any]] = [
    run_text,
    run_failing,
    both_streams_in_one,
    not_there,
    expired,
    expired_without_pipes,
    much_both_ways,
    spoken_with,
    read_line_by_line,
    closed_early,
    chained,
    polled,
    killed,
    into_a_file,
    from_a_file,
    broken_pipe,
    closes_its_stdin,
    selected,
    read_by_threads,
    through_os,
    of_asyncio,
    of_asyncio_spoken_with,
    of_asyncio_closes_its_stdin,
    of_asyncio_closes_its_stdin_later,
    of_asyncio_killed,
    of_uvloop,
    on_a_terminal,
    python_child,
]
