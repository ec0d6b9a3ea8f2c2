"""HTTP, gRPC, databases, queues, MCP, servers, processes, checkpoints."""

from __future__ import annotations

from typing import Final

from playhead_core.boundary_rows.boundary import CAUSAL, EXCHANGES, Boundary, below

CONNECTIONS: Final[tuple[Boundary, ...]] = (
    Boundary(
        "http.httpx",
        EXCHANGES,
        "choice",
        "exchanges: each attempt over httpx and httpx2",
        "requests are refused",
        (
            *below("httpx", "Client._transport_for_url AsyncClient._transport_for_url"),
            *below("httpx2", "Client._transport_for_url AsyncClient._transport_for_url"),
        ),
        on_import=(("httpx", "libraries.http.httpx:patch"), ("httpx2", "libraries.http.httpx:patch")),
    ),
    Boundary(
        "http.urllib3",
        EXCHANGES,
        "choice",
        "exchanges: each attempt over urllib3, requests, botocore",
        "requests are refused",
        (
            "urllib3.connectionpool.HTTPConnectionPool._make_request",
            "urllib3.connectionpool.HTTPConnectionPool._prepare_proxy",
            "urllib3.connectionpool.HTTPSConnectionPool._prepare_proxy",
        ),
        on_import=(("urllib3.connectionpool", "libraries.http.urllib3:patch"),),
    ),
    Boundary(
        "http.client",
        EXCHANGES,
        "choice",
        "exchanges: requests over http.client and urllib.request, connections that fail before one",
        "requests are refused",
        (
            *below("http.client.HTTPConnection", "__init__ connect endheaders send getresponse close"),
            "http.client.HTTPSConnection.connect",
        ),
        on_import=(("http.client", "libraries.http.http_client:patch"),),
    ),
    Boundary(
        "http.aiohttp",
        EXCHANGES,
        "choice",
        "exchanges: each attempt over aiohttp",
        "requests are refused",
        (
            "aiohttp.connector.BaseConnector.connect",
            *below("aiohttp.client_reqrep", "ClientRequest.send ClientRequest.write_bytes"),
            "aiohttp.client_reqrep.ClientResponse.start",
            "aiohttp.http_writer.StreamWriter.write_headers",
            *below(
                "aiohttp.client_proto.ResponseHandler",
                "data_received connection_lost _on_read_timeout close",
            ),
        ),
        on_import=(("aiohttp.client", "libraries.http.aiohttp:patch"),),
    ),
    Boundary(
        "grpc",
        EXCHANGES,
        "choice",
        "exchanges: calls and their messages over blocking channels",
        "calls are refused",
        (
            *below("grpc._cython.cygrpc", "Channel SendInitialMetadataOperation SendMessageOperation"),
            "grpc._channel._channel_managed_call_management",
        ),
        on_import=(("grpc._channel", "libraries.grpc.sync:patch"),),
    ),
    Boundary(
        "grpc.aio",
        EXCHANGES,
        "choice",
        "exchanges: calls and their messages over grpc.aio",
        "calls are refused",
        ("grpc._cython.cygrpc.AioChannel",),
        on_import=(("grpc.aio._channel", "libraries.grpc.aio:patch"),),
    ),
    Boundary(
        "websockets",
        EXCHANGES,
        "choice",
        "exchanges: connections and their messages",
        "connections are refused",
        ("websockets.asyncio.client.connect", "websockets.sync.client.connect"),
        on_import=(
            ("websockets.asyncio.client", "libraries.websockets.asyncio_client:patch"),
            ("websockets.sync.client", "libraries.websockets.sync_client:patch"),
        ),
    ),
    Boundary(
        "redis",
        EXCHANGES,
        "choice",
        "exchanges: commands of redis-py, channel messages, opened connections",
        "commands are refused",
        (
            *below(
                "redis.connection.AbstractConnection",
                "connect_check_health send_packed_command can_read",
            ),
            *below("redis.connection", "Connection._connect SSLConnection._connect"),
            "redis.connection.UnixDomainSocketConnection._connect",
            *below(
                "redis.asyncio.connection.AbstractConnection", "connect_check_health send_packed_command"
            ),
            *below(
                "redis.asyncio.connection", "Connection._connect UnixDomainSocketConnection._connect"
            ),
        ),
        on_import=(
            ("redis.connection", "libraries.redis.sync:patch"),
            ("redis.asyncio.connection", "libraries.redis.aio:patch"),
        ),
    ),
    Boundary(
        "kombu",
        CAUSAL,
        "level",
        "exchanges and reads: readable connections of a worker or client, signals to a worker",
        "workers wait for connections that do not exist",
        (
            *below("kombu.utils.eventio._epoll", "register unregister poll"),
            *below("kombu.utils.eventio._poll", "register unregister poll"),
            *below("kombu.utils.eventio._select", "register unregister poll"),
            "celery.platforms.Signals.__setitem__",
            *below("celery", "worker.state.maybe_shutdown backends.redis._socket_readable"),
        ),
        on_import=(
            ("kombu.utils.eventio", "libraries.redis.watchers:patch_watchers"),
            ("celery.platforms", "libraries.redis.watchers:patch_signals"),
            ("celery.worker.state", "libraries.redis.watchers:patch_state"),
            ("celery.backends.redis", "libraries.redis.watchers:patch_clients"),
        ),
        guards=False,
    ),
    Boundary(
        "psycopg",
        EXCHANGES,
        "choice",
        "exchanges: statements of psycopg 3 with rows and copies, opened connections",
        "statements are refused",
        (
            *below("psycopg.waiting", "wait wait_conn wait_async wait_conn_async"),
            *below("psycopg._connection_base.BaseConnection", "_exec_command _deallocate _cancel_gen"),
            *below("psycopg._connection_base.BaseConnection", "_notice_handler _notify_handler"),
            *below(
                "psycopg._cursor_base.BaseCursor", "_execute_send _send_query_prepared _send_prepare"
            ),
            "psycopg.client_cursor.ClientCursorMixin._execute_send",
            "psycopg._server_cursor_base.ServerCursorMixin._describe_gen",
            "psycopg._pipeline_base.BasePipeline._enqueue_sync",
            "psycopg._conninfo_attempts._resolve_hostnames",
            "psycopg._conninfo_attempts_async._resolve_hostnames",
            *below("psycopg.generators", "connect execute"),
            *below("psycopg._cursor_base", "execute send fetch"),
            "psycopg._server_cursor_base.execute",
            *below("psycopg._pipeline_base", "send fetch_many pipeline_communicate"),
            "psycopg._copy_base.copy_from",
            *below("psycopg._copy", "copy_to copy_end"),
            *below("psycopg._copy_async", "copy_to copy_end"),
            "psycopg.connection.notifies",
            "psycopg.connection_async.notifies",
        ),
        on_import=(("psycopg", "libraries.postgresql.psycopg.patches:patch"),),
    ),
    Boundary(
        "asyncpg",
        EXCHANGES,
        "choice",
        "exchanges: statements of asyncpg with rows and copies, opened connections",
        "statements are refused",
        (
            *below("asyncpg.connect_utils", "_connect_addr _create_ssl_connection _cancel"),
            *below(
                "asyncpg.protocol.protocol.Protocol", "connection_made data_received connection_lost"
            ),
            *below("asyncpg.connection.Connection", "_cancel _introspect_types _introspect_type"),
        ),
        on_import=(("asyncpg.connection", "libraries.postgresql.asyncpg.opening:patch"),),
    ),
    Boundary(
        "pools",
        EXCHANGES,
        "choice",
        "connection-pool set-up statements are matched to later connections",
        "these statements are treated like others",
        (
            "sqlalchemy.pool.base._ConnectionRecord._ConnectionRecord__connect",
            "django.db.backends.base.base.BaseDatabaseWrapper.connect",
            "asyncpg.pool.PoolConnectionHolder.connect",
            "psycopg_pool.pool.ConnectionPool._connect",
            "psycopg_pool.pool_async.AsyncConnectionPool._connect",
        ),
        on_import=(
            ("sqlalchemy.pool.base", "libraries.database.set_up:patch_sqlalchemy"),
            ("django.db.backends.base.base", "libraries.database.set_up:patch_django"),
            ("asyncpg.pool", "libraries.database.set_up:patch_asyncpg"),
            ("psycopg_pool.pool", "libraries.database.set_up:patch_psycopg_pool"),
            ("psycopg_pool.pool_async", "libraries.database.set_up:patch_psycopg_pool_async"),
        ),
    ),
    Boundary(
        "mcp",
        EXCHANGES,
        "choice",
        "exchanges: messages of stdio servers; a span for each tool call",
        "stdio servers are not started",
        ("mcp.client.stdio.stdio_client", "mcp.client.session.ClientSession.call_tool"),
        on_import=(
            ("mcp.client.stdio", "libraries.mcp.client:patch_stdio"),
            ("mcp.client.session", "libraries.mcp.client:patch_session"),
            ("mcp.shared._otel", "libraries.mcp.client:patch_context"),
            ("mcp.shared.session", "libraries.mcp.trace_context:patch_requests"),
            ("mcp.server.lowlevel.server", "libraries.mcp.trace_context:patch_server"),
        ),
    ),
    Boundary(
        "servers",
        EXCHANGES,
        "choice",
        "exchanges: each request to an ASGI or WSGI application",
        "requests are not separate runs",
        (
            *below("uvicorn", "config.Config.load server.Server.serve"),
            *below("uvicorn.supervisors", "basereload.BaseReload.run multiprocess.Multiprocess.run"),
            *below("hypercorn.app_wrappers", "ASGIWrapper.__init__ WSGIWrapper.__init__"),
            "hypercorn.asyncio.run.worker_serve",
            *below("gunicorn", "arbiter.Arbiter.run workers.base.Worker.load_wsgi"),
            "gunicorn.workers.gasgi.ASGIWorker.load_wsgi",
            *below("werkzeug.serving.BaseWSGIServer", "__init__ serve_forever"),
            *below("wsgiref.simple_server.WSGIServer", "set_app serve_forever"),
        ),
        on_import=(
            ("uvicorn.config", "libraries.inbound.servers:patch_uvicorn_config"),
            ("uvicorn.server", "libraries.inbound.servers:patch_uvicorn_server"),
            ("uvicorn.supervisors.basereload", "libraries.inbound.servers:patch_uvicorn_reload"),
            ("uvicorn.supervisors.multiprocess", "libraries.inbound.servers:patch_uvicorn_workers"),
            ("hypercorn.app_wrappers", "libraries.inbound.servers:patch_hypercorn_wrappers"),
            ("hypercorn.asyncio.run", "libraries.inbound.servers:patch_hypercorn_run"),
            ("gunicorn.arbiter", "libraries.inbound.servers:patch_gunicorn_arbiter"),
            ("gunicorn.workers.base", "libraries.inbound.servers:patch_gunicorn_worker"),
            ("gunicorn.workers.gasgi", "libraries.inbound.servers:patch_gunicorn_asgi"),
            ("werkzeug.serving", "libraries.inbound.servers:patch_werkzeug"),
            ("wsgiref.simple_server", "libraries.inbound.servers:patch_wsgiref"),
        ),
    ),
    Boundary(
        "processes",
        EXCHANGES,
        "choice",
        "exchanges: command, exit status and data read through pipes of subprocess, of each child",
        "child processes are refused",
        (
            *below("subprocess.Popen", "_execute_child _communicate _handle_exitstatus"),
            "subprocess.io",
            *below(
                "asyncio.base_subprocess.BaseSubprocessTransport", "_pipe_data_received _process_exited"
            ),
            *below("os", "system _spawnvef posix_spawn posix_spawnp execv execve fork"),
            "gevent.subprocess.Popen._execute_child",
            "claude_agent_sdk._internal.query.os",
            *below(
                "claude_agent_sdk._internal.transport.subprocess_cli.SubprocessCLITransport",
                "_find_cli connect",
            ),
        ),
        at_start=("libraries.subprocess.start:watch",),
        on_import=(
            ("subprocess", "libraries.subprocess.start:patch_subprocess"),
            ("asyncio.base_subprocess", "libraries.subprocess.start:patch_asyncio"),
            ("gevent.subprocess", "libraries.subprocess.start:patch_gevent"),
            (
                "claude_agent_sdk._internal.query",
                "libraries.subprocess.claude_agent_sdk:patch_requests",
            ),
            (
                "claude_agent_sdk._internal.transport.subprocess_cli",
                "libraries.subprocess.claude_agent_sdk:patch_transport",
            ),
        ),
    ),
    Boundary(
        "processes.workers",
        EXCHANGES,
        "choice",
        "exchanges: start and end of each multiprocessing process",
        "multiprocessing processes are refused",
        (
            "multiprocessing.util.spawnv_passfds",
            "multiprocessing.spawn.get_preparation_data",
            "multiprocessing.popen_spawn_posix.Popen._launch",
            *below("multiprocessing.popen_forkserver", "Popen._launch Popen.poll forkserver"),
        ),
        on_import=(
            ("multiprocessing.util", "libraries.subprocess.workers:patch_util"),
            ("multiprocessing.spawn", "libraries.subprocess.workers:patch_preparation"),
            ("multiprocessing.popen_spawn_posix", "libraries.subprocess.workers:patch_spawn"),
            ("multiprocessing.popen_forkserver", "libraries.subprocess.workers:patch_forkserver"),
        ),
    ),
    Boundary(
        "checkpoints",
        EXCHANGES,
        "choice",
        "states put into checkpoint stores; read: the span for which a framework puts them",
        "they are still put",
        (
            *below("playhead_checkpoint.copies.reporting", "report_state report_notes"),
            "playhead_checkpoint.store.linking.current_span",
        ),
        on_import=(
            ("playhead_checkpoint.copies.reporting", "libraries.stored_checkpoints:patch"),
            ("playhead_checkpoint.store.linking", "libraries.stored_checkpoints:patch_linking"),
        ),
        guards=False,
    ),
)
