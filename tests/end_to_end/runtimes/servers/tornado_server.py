"""A server and a client of tornado in one loop."""

import asyncio
import sys

import tornado.httpclient
import tornado.httpserver
import tornado.netutil
import tornado.web


class Answers(tornado.web.RequestHandler):
    async def get(self, number):
        await asyncio.sleep(0.01)
        self.write({"number": number})


async def main():
    server = tornado.httpserver.HTTPServer(tornado.web.Application([(r"/(\d+)", Answers)]))
    [socket] = tornado.netutil.bind_sockets(0, "127.0.0.1")
    server.add_socket(socket)
    port = socket.getsockname()[1]
    client = tornado.httpclient.AsyncHTTPClient()
    urls = [f"http://127.0.0.1:{port}/{number}" for number in range(4)]
    print([one.body for one in await asyncio.gather(*map(client.fetch, urls))])
    server.stop()


asyncio.run(main())
sys.exit(3)
