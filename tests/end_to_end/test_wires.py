"""An agent that talks over a WebSocket and gRPC: recorded, shown, replayed with both servers gone."""

from pathlib import Path

from support.servers.grpc_server import GrpcServer
from support.servers.websocket_server import WebSocketServer
from support.starting.home import Home

AGENT = """
import asyncio, os, sys
import grpc
from websockets.asyncio.client import connect
from websockets.sync.client import connect as connect_sync


async def listen(url, name):
    async with connect(url, open_timeout=60) as socket:
        for _ in range(3):
            await socket.send("same")
            print(name, await socket.recv())


async def main(url, target):
    await asyncio.gather(*(listen(url, name) for name in "abc"))
    async with grpc.aio.insecure_channel(target) as channel:
        ask = channel.unary_unary("/test.Service/Ask")
        for answer in await asyncio.gather(*(ask(b"same") for _ in range(5))):
            print(answer)


url, target = sys.argv[1:3]
asyncio.run(main(url, target))
with grpc.insecure_channel(target) as channel:
    print(list(channel.unary_stream("/test.Service/List")(b"list")))
    try:
        channel.unary_unary("/test.Service/Ask")(b"fail")
    except grpc.RpcError as error:
        print(error.code(), error.details())
with connect_sync(url, open_timeout=60) as socket:
    socket.send(os.environ.get("WORD", "hello"))
    print(socket.recv())
"""


def test_a_recorded_agent_is_shown_and_replays_identical(tmp_path: Path):
    home = Home(tmp_path, {})
    agent = tmp_path / "wires.py"
    agent.write_text(AGENT)
    with WebSocketServer() as sockets, GrpcServer() as calls:
        done = home.playhead("record", agent, sockets.url("/chat"), calls.target)
    assert done.returncode == 0, done.stderr
    shown = home.playhead("show", "last").stdout
    assert shown.count("websocket /chat") == 4
    assert "4 sent, 5 received 127.0.0.1:" in shown
    assert "test.Service/Ask" in shown
    assert "NOT_FOUND: no such thing" in shown
    status, report = home.report("last")
    assert report["divergences"] == []
    assert (status, report["verdict"], report["level"]) == (0, "identical", "strict")
    assert report["boundaries"]["websocket"]["exact"] == 4
    assert report["boundaries"]["grpc"]["exact"] == 7
