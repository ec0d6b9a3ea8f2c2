"""The table of boundaries: what each level patches and records, and what a replay does without it.

This table is the single source. The bootstrap installs from it, ``playhead doctor`` and the
documentation print it, and a test compares the interpreter before and after with it. Each row names its
installers as ``MODULE:FUNCTION`` below `playhead_instrumentation`: unselected rows are not imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from playhead_core.errors import ConfigurationError, nearest
from playhead_semconv import attributes as a

Level: TypeAlias = Literal["exchanges", "causal", "strict"]

LEVELS: Final[tuple[Level, ...]] = ("exchanges", "causal", "strict")
"""From the cheapest to the most exact; each includes the previous ones."""

EXCHANGES, CAUSAL, STRICT = LEVELS

DEFAULT: Final[Level] = EXCHANGES
"""Level of a process if none is set."""

Choice: TypeAlias = Literal["always", "choice", "level"]


class Boundary(msgspec.Struct, frozen=True):
    """One row: a point where data, time or order enters the process."""

    name: str
    """Name in the setting ``boundaries``, in ``playhead doctor`` and in the documentation."""
    level: Level | None
    """The lowest level that includes it; None: only the setting ``boundaries`` adds it."""
    choice: Choice
    """``always``: in every recording. ``choice``: the setting ``boundaries`` adds or removes it.

    ``level``: only the level decides, because it makes no sense without the others.
    """
    facts: str
    """What it records on the tape."""
    without: str
    """What a replay does if the recording did not have it."""
    targets: tuple[str, ...]
    """Patched names, ``MODULE.CLASS.NAME`` or ``MODULE.NAME``; an audit hook: ``sys.addaudithook``."""
    at_start: tuple[str, ...] = ()
    """Installers called when the recording starts."""
    on_import: tuple[tuple[str, str], ...] = ()
    """Modules, and the installer called when each is imported."""
    guards: bool = True
    """Whether a replay installs it even if the recording did not have it."""
    is_compared: bool = True
    """Whether a replay compares what it records."""


def _below(prefix: str, names: str) -> tuple[str, ...]:
    return tuple(f"{prefix}.{name}" for name in names.split())


BOUNDARIES: Final[tuple[Boundary, ...]] = (
    Boundary(
        "lanes.asyncio",
        EXCHANGES,
        "always",
        "the lane of each task",
        "every recording has it",
        ("asyncio.base_events.BaseEventLoop.create_task", "uvloop.Loop.create_task"),
        on_import=(
            ("asyncio.base_events", "patching.lane_hooks:hook_asyncio"),
            ("uvloop", "patching.lane_hooks:hook_uvloop"),
        ),
    ),
    Boundary(
        "lanes.threads",
        EXCHANGES,
        "always",
        "the lane of each thread, and of each greenlet of gevent",
        "every recording has it",
        ("threading.Thread.start", "threading.Thread._bootstrap_inner"),
        at_start=("patching.lane_hooks:hook_threads",),
        on_import=(
            ("eventlet.patcher", "session.eventlet:before_eventlet"),
            ("gevent", "patching.lane_hooks:hook_gevent"),
        ),
    ),
    Boundary(
        "lanes.executors",
        EXCHANGES,
        "always",
        "the lane of each job",
        "every recording has it",
        ("concurrent.futures.thread.ThreadPoolExecutor.submit", "gevent.threadpool.ThreadPool.spawn"),
        on_import=(
            ("concurrent.futures.thread", "patching.lane_hooks:hook_executor"),
            ("gevent.threadpool", "patching.lane_hooks:hook_gevent_pool"),
        ),
    ),
    Boundary(
        "exit",
        EXCHANGES,
        "always",
        "the exit status; facts are delivered before the program ends itself with a signal",
        "every recording has it",
        ("sys.exit", "os._exit", "_sitebuiltins.Quitter.__call__", "signal.raise_signal"),
    ),
    Boundary(
        "openai",
        EXCHANGES,
        "choice",
        "a span for each model call",
        "its requests are still answered",
        _below("openai._base_client", "SyncAPIClient.request AsyncAPIClient.request"),
        on_import=(("openai._base_client", "libraries.model_sdks.openai:patch"),),
    ),
    Boundary(
        "anthropic",
        EXCHANGES,
        "choice",
        "a span for each model call",
        "its requests are still answered",
        _below("anthropic._base_client", "SyncAPIClient.request AsyncAPIClient.request"),
        on_import=(("anthropic._base_client", "libraries.model_sdks.anthropic:patch"),),
    ),
    Boundary(
        "botocore",
        EXCHANGES,
        "choice",
        "a span for each model call on Bedrock",
        "its requests are still answered",
        ("botocore.client.BaseClient._make_api_call",),
        on_import=(("botocore.client", "libraries.model_sdks.botocore:patch"),),
    ),
    Boundary(
        "groq",
        EXCHANGES,
        "choice",
        "a span for each model call",
        "its requests are still answered",
        _below("groq._base_client", "SyncAPIClient.request AsyncAPIClient.request"),
        on_import=(("groq._base_client", "libraries.model_sdks.openai:patch"),),
    ),
    Boundary(
        "together",
        EXCHANGES,
        "choice",
        "a span for each model call",
        "its requests are still answered",
        _below("together._base_client", "SyncAPIClient.request AsyncAPIClient.request"),
        on_import=(("together._base_client", "libraries.model_sdks.openai:patch"),),
    ),
    Boundary(
        "google_genai",
        EXCHANGES,
        "choice",
        "a span for each model call",
        "its requests are still answered",
        _below("google.genai._api_client.BaseApiClient", "_request _async_request"),
        on_import=(("google.genai._api_client", "libraries.model_sdks.google_genai:patch"),),
    ),
    Boundary(
        "mistralai",
        EXCHANGES,
        "choice",
        "a span for each model call",
        "its requests are still answered",
        (
            *_below("mistralai.client.basesdk.BaseSDK", "do_request do_request_async"),
            *_below("mistralai.basesdk.BaseSDK", "do_request do_request_async"),
        ),
        on_import=(
            ("mistralai.client.basesdk", "libraries.model_sdks.mistralai:patch"),
            ("mistralai.basesdk", "libraries.model_sdks.mistralai:patch"),
            ("mistralai.client._hooks.tracing", "libraries.model_sdks.mistralai:patch_tracing"),
        ),
    ),
    Boundary(
        "cohere",
        EXCHANGES,
        "choice",
        "a span for each model call",
        "its requests are still answered",
        _below(
            "cohere.core.http_client",
            "HttpClient.request HttpClient.stream AsyncHttpClient.request AsyncHttpClient.stream",
        ),
        on_import=(("cohere.core.http_client", "libraries.model_sdks.cohere:patch"),),
    ),
    Boundary(
        "ollama",
        EXCHANGES,
        "choice",
        "a span for each model call",
        "its requests are still answered",
        _below("ollama._client", "Client._request AsyncClient._request"),
        on_import=(("ollama._client", "libraries.model_sdks.ollama:patch"),),
    ),
    Boundary(
        "huggingface_hub",
        EXCHANGES,
        "choice",
        "a span for each model call",
        "its requests are still answered",
        (
            "huggingface_hub.inference._client.InferenceClient._inner_post",
            "huggingface_hub.inference._generated._async_client.AsyncInferenceClient._inner_post",
        ),
        on_import=(
            ("huggingface_hub.inference._client", "libraries.model_sdks.huggingface_hub:patch"),
            (
                "huggingface_hub.inference._generated._async_client",
                "libraries.model_sdks.huggingface_hub:patch_async",
            ),
        ),
    ),
    Boundary(
        "litellm",
        EXCHANGES,
        "choice",
        "a span for each model call, through any client",
        "its requests are still answered",
        _below(
            "litellm.main",
            "completion acompletion text_completion atext_completion embedding aembedding",
        ),
        on_import=(("litellm.main", "libraries.model_sdks.litellm:patch"),),
    ),
    Boundary(
        "frameworks",
        EXCHANGES,
        "choice",
        "spans of agents, graphs, nodes, tools, retrievals and hand-offs",
        "their requests are still answered",
        (
            "langchain_core.runnables.config._set_config_context",
            *_below("langchain_core.language_models.chat_models.BaseChatModel", "generate agenerate"),
            *_below("langchain_core.retrievers.BaseRetriever", "invoke ainvoke"),
            "langgraph._internal._runnable._set_config_context",
            "langgraph.utils.runnable._set_config_context",
            *_below("agents.tracing.provider.DefaultTraceProvider", "__init__ set_processors"),
            *_below("agents.tracing.scope.Scope", "set_current_span reset_current_span"),
            *_below("agents.tracing.scope.Scope", "set_current_trace reset_current_trace"),
            "agents.tool_context.ToolContext.__init__",
        ),
        at_start=("libraries.frameworks.hooks:watch",),
        guards=False,
        is_compared=False,
    ),
    Boundary(
        "logs",
        EXCHANGES,
        "choice",
        "log records of the program from `log-level` on, beside the tape",
        "nothing changes",
        ("logging.Filterer.filter",),
        at_start=("libraries.log_records:watch",),
        guards=False,
        is_compared=False,
    ),
    Boundary(
        "http.httpx",
        EXCHANGES,
        "choice",
        "exchanges: each attempt over httpx and httpx2",
        "requests are refused",
        (
            *_below("httpx", "Client._transport_for_url AsyncClient._transport_for_url"),
            *_below("httpx2", "Client._transport_for_url AsyncClient._transport_for_url"),
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
        "exchanges: each request over http.client and urllib.request",
        "requests are refused",
        (
            *_below("http.client.HTTPConnection", "connect endheaders send getresponse close"),
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
            *_below("aiohttp.client_reqrep", "ClientRequest.send ClientRequest.write_bytes"),
            "aiohttp.client_reqrep.ClientResponse.start",
            "aiohttp.http_writer.StreamWriter.write_headers",
            *_below(
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
            *_below("grpc._cython.cygrpc", "Channel SendInitialMetadataOperation SendMessageOperation"),
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
            *_below(
                "redis.connection.AbstractConnection",
                "connect_check_health send_packed_command can_read",
            ),
            *_below("redis.connection", "Connection._connect SSLConnection._connect"),
            "redis.connection.UnixDomainSocketConnection._connect",
            *_below(
                "redis.asyncio.connection.AbstractConnection", "connect_check_health send_packed_command"
            ),
            *_below(
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
            *_below("kombu.utils.eventio._epoll", "register unregister poll"),
            *_below("kombu.utils.eventio._poll", "register unregister poll"),
            *_below("kombu.utils.eventio._select", "register unregister poll"),
            "celery.platforms.Signals.__setitem__",
            *_below("celery", "worker.state.maybe_shutdown backends.redis._socket_readable"),
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
            *_below("psycopg.waiting", "wait wait_conn wait_async wait_conn_async"),
            *_below("psycopg._connection_base.BaseConnection", "_exec_command _deallocate _cancel_gen"),
            *_below("psycopg._connection_base.BaseConnection", "_notice_handler _notify_handler"),
            *_below(
                "psycopg._cursor_base.BaseCursor", "_execute_send _send_query_prepared _send_prepare"
            ),
            "psycopg.client_cursor.ClientCursorMixin._execute_send",
            "psycopg._server_cursor_base.ServerCursorMixin._describe_gen",
            "psycopg._pipeline_base.BasePipeline._enqueue_sync",
            "psycopg._conninfo_attempts._resolve_hostnames",
            "psycopg._conninfo_attempts_async._resolve_hostnames",
            *_below("psycopg.generators", "connect execute"),
            *_below("psycopg._cursor_base", "execute send fetch"),
            "psycopg._server_cursor_base.execute",
            *_below("psycopg._pipeline_base", "send fetch_many pipeline_communicate"),
            "psycopg._copy_base.copy_from",
            *_below("psycopg._copy", "copy_to copy_end"),
            *_below("psycopg._copy_async", "copy_to copy_end"),
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
            *_below("asyncpg.connect_utils", "_connect_addr _create_ssl_connection _cancel"),
            *_below(
                "asyncpg.protocol.protocol.Protocol", "connection_made data_received connection_lost"
            ),
            *_below("asyncpg.connection.Connection", "_cancel _introspect_types _introspect_type"),
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
            *_below("uvicorn", "config.Config.load server.Server.serve"),
            *_below("uvicorn.supervisors", "basereload.BaseReload.run multiprocess.Multiprocess.run"),
            *_below("hypercorn.app_wrappers", "ASGIWrapper.__init__ WSGIWrapper.__init__"),
            "hypercorn.asyncio.run.worker_serve",
            *_below("gunicorn", "arbiter.Arbiter.run workers.base.Worker.load_wsgi"),
            "gunicorn.workers.gasgi.ASGIWorker.load_wsgi",
            *_below("werkzeug.serving.BaseWSGIServer", "__init__ serve_forever"),
            *_below("wsgiref.simple_server.WSGIServer", "set_app serve_forever"),
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
            *_below("subprocess.Popen", "_execute_child _communicate _handle_exitstatus"),
            "subprocess.io",
            *_below(
                "asyncio.base_subprocess.BaseSubprocessTransport", "_pipe_data_received _process_exited"
            ),
            *_below("os", "system _spawnvef posix_spawn posix_spawnp execv execve fork"),
            "gevent.subprocess.Popen._execute_child",
        ),
        at_start=("libraries.subprocess.start:watch",),
        on_import=(
            ("subprocess", "libraries.subprocess.start:patch_subprocess"),
            ("asyncio.base_subprocess", "libraries.subprocess.start:patch_asyncio"),
            ("gevent.subprocess", "libraries.subprocess.start:patch_gevent"),
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
            *_below("multiprocessing.popen_forkserver", "Popen._launch Popen.poll forkserver"),
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
            *_below("playhead_checkpoint.copies.reporting", "report_state report_notes"),
            "playhead_checkpoint.store.linking.current_span",
        ),
        on_import=(
            ("playhead_checkpoint.copies.reporting", "libraries.stored_checkpoints:patch"),
            ("playhead_checkpoint.store.linking", "libraries.stored_checkpoints:patch_linking"),
        ),
        guards=False,
    ),
    Boundary(
        "signals",
        EXCHANGES,
        "always",
        "when signal handlers ran; reads: timers that send signals; exchanges: waits for signals",
        "only signals that the program sends to itself arrive",
        (
            *_below("signal", "signal getsignal raise_signal pthread_kill"),
            *_below("signal", "setitimer getitimer alarm pause sigwait sigwaitinfo sigtimedwait"),
            *_below("os", "kill killpg"),
        ),
        at_start=("libraries.signals:watch",),
        guards=False,
    ),
    Boundary(
        "random",
        EXCHANGES,
        "choice",
        "read: the state of the shared `random` generator, once",
        "the shared generator draws other values",
        (),
        at_start=("libraries.common.random_state:watch",),
    ),
    Boundary(
        "clock",
        CAUSAL,
        "choice",
        "reads: time, datetime, log records",
        "time is virtual: it advances to the recorded time of each response",
        (
            *_below("time", "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns"),
            *_below("time", "process_time process_time_ns thread_time thread_time_ns"),
            *_below("time", "clock_gettime clock_gettime_ns localtime gmtime strftime asctime ctime"),
            *_below("datetime", "datetime.now datetime.utcnow date.today"),
            "logging.LogRecord.__init__",
        ),
        at_start=("libraries.ambient.clock:watch", "libraries.ambient.clock:watch_log_records"),
    ),
    Boundary(
        "entropy",
        CAUSAL,
        "choice",
        "reads: random bytes of the system, seeds, names of temporary files, uuid1",
        "random values differ; requests may differ in them",
        (
            *_below("os", "urandom getrandom"),
            *_below("random", "Random.seed _urandom seed random getrandbits"),
            *_below("random._inst", "random getrandbits"),
            *_below("tempfile", "_RandomNameSequence.__next__"),
            "uuid.uuid1",
            "numpy.random.bit_generator.randbits",
            "kombu.common.generate_oid",
            *_below("uuid_utils", "uuid1 uuid4 uuid6 uuid7"),
            *_below("uuid_utils.compat", "uuid1 uuid4 uuid6 uuid7"),
        ),
        at_start=("libraries.ambient.entropy:watch",),
        on_import=(
            ("numpy.random.bit_generator", "libraries.ambient.entropy:patch_numpy"),
            ("kombu.common", "libraries.ambient.entropy:patch_kombu"),
        ),
    ),
    Boundary(
        "secrets",
        None,
        "choice",
        "reads: draws of secrets, SystemRandom and cryptography libraries; needs `entropy`",
        "keys and tokens differ",
        (),
    ),
    Boundary(
        "files",
        CAUSAL,
        "choice",
        "reads: content and metadata of files; effects: changes by the program",
        "files are read as they are now; writes stay in a scratch folder",
        (
            *_below("builtins", "open"),
            *_below("io", "open"),
            *_below("os", "stat lstat fstat statvfs access listdir readlink getxattr listxattr"),
            *_below("os", "scandir open close mkdir rmdir unlink remove chmod chown utime truncate"),
            *_below(
                "os", "setxattr removexattr mkfifo chdir rename replace link symlink getcwd getcwdb"
            ),
            # Where these functions say that they are of, and are looked for by `pickle`.
            *_below("_io", "open"),
            *_below("posix", "stat lstat fstat statvfs access listdir readlink getxattr listxattr"),
            *_below("posix", "scandir open close mkdir rmdir unlink remove chmod chown utime truncate"),
            *_below(
                "posix", "setxattr removexattr mkfifo chdir rename replace link symlink getcwd getcwdb"
            ),
            "tempfile._get_default_tempdir",
            "tarfile.bltn_open",
        ),
        at_start=("libraries.files.installing:watch",),
        guards=False,
    ),
    Boundary(
        "sqlite",
        CAUSAL,
        "choice",
        "reads: content of opened databases, changes before each exchange; effects: content afterwards",
        "a copy of the current database is opened",
        ("sqlite3.connect", "sqlite3.dbapi2.connect", "_sqlite3.connect"),
        on_import=(
            ("sqlite3.dbapi2", "libraries.sqlite:patch"),
            ("sqlite3", "libraries.sqlite:patch"),
        ),
        guards=False,
    ),
    Boundary(
        "stdin",
        CAUSAL,
        "choice",
        "exchanges: data read from standard input",
        "standard input is empty",
        ("sys.stdin", "sys.__stdin__", "builtins.input", "getpass.getpass"),
        at_start=("libraries.standard_streams:watch_stdin",),
        guards=False,
    ),
    Boundary(
        "output",
        CAUSAL,
        "choice",
        "effects: text printed to standard output and standard error",
        "output is not compared",
        ("sys.stdout.write", "sys.stdout.flush", "sys.stderr.write", "sys.stderr.flush"),
        at_start=("libraries.standard_streams:watch_output",),
        guards=False,
    ),
    Boundary(
        "processes.talk",
        CAUSAL,
        "level",
        "exchanges: polls, waits, signals, terminals; changes by children in the folder of the run",
        "changes by children are not repeated",
        (
            *_below("subprocess.Popen", "_wait _internal_poll"),
            "subprocess._PopenSelector",
            *_below("asyncio.base_subprocess.BaseSubprocessTransport", "__init__ _connect_pipes"),
            *_below("asyncio.unix_events", "ThreadedChildWatcher._do_waitpid"),
            *(
                f"asyncio.unix_events.{name}ChildWatcher.add_child_handler"
                for name in "Abstract Fast MultiLoop Pidfd Safe Threaded".split()
            ),
            *_below("os", "read write waitpid wait kill killpg getpgid forkpty"),
            # Modules that these functions, and those of `processes` and `signals`, report as their own.
            *_below("_signal", "pthread_kill setitimer getitimer alarm pause sigwaitinfo sigtimedwait"),
            *_below("posix", "read write waitpid wait kill killpg getpgid forkpty"),
            *_below("posix", "execv execve fork posix_spawn posix_spawnp system"),
            *_below("pty", "fork spawn waitpid"),
            *_below("uvloop.Loop", "subprocess_exec subprocess_shell close"),
        ),
        at_start=("libraries.subprocess_full.os_calls:watch", "libraries.subprocess_full.fence:watch"),
        on_import=(
            ("subprocess", "libraries.subprocess_full.popen:patch"),
            ("asyncio.base_subprocess", "libraries.subprocess_full.asyncio_transport:patch"),
            ("asyncio.unix_events", "libraries.subprocess_full.asyncio_transport:patch_watchers"),
            ("pty", "libraries.subprocess_full.terminals:patch"),
            ("uvloop", "libraries.subprocess_full.uvloop_loop:patch"),
        ),
    ),
    Boundary(
        "processes.messages",
        CAUSAL,
        "level",
        "exchanges and reads: messages between processes of multiprocessing and of Celery pools",
        "multiprocessing processes really talk to each other",
        (
            *_below("multiprocessing.connection", "Connection._send_bytes Connection._recv_bytes wait"),
            *_below("multiprocessing.connection", "SocketListener.__init__ SocketListener.accept"),
            *_below("multiprocessing.connection", "SocketListener.close SocketClient"),
            *_below("multiprocessing.connection", "answer_challenge deliver_challenge _playhead_wait"),
            *_below("multiprocessing", "pool.wait pool.Pool._wait_for_updates util.get_temp_dir"),
            "multiprocessing.pool.ThreadPool._repopulate_pool",
            *_below("multiprocessing.reduction", "recv_handle send_handle"),
            *_below("multiprocessing.synchronize", "_multiprocessing Barrier._state Barrier._count"),
            *_below("multiprocessing.sharedctypes", "Synchronized.value SynchronizedString.value"),
            *_below("multiprocessing.sharedctypes", "SynchronizedString.raw"),
            *_below("multiprocessing.sharedctypes.SynchronizedArray", "__getitem__ __getslice__"),
            "multiprocessing.managers.id",
            *_below("multiprocessing.resource_sharer", "os"),
            *_below("concurrent.futures.process", "os"),
            *_below("billiard.connection", "Connection._send_bytes Connection._recv_bytes wait"),
            *_below("billiard.connection", "_ConnectionBase.send_offset _playhead_wait"),
            *_below("billiard.synchronize", "_billiard Barrier._state Barrier._count"),
            *_below("billiard.sharedctypes", "Synchronized.value SynchronizedString.value"),
            *_below("billiard.sharedctypes", "SynchronizedString.raw"),
            *_below("billiard.sharedctypes.SynchronizedArray", "__getitem__ __getslice__"),
            "billiard.heap.Arena.__init__",
            *_below("billiard.pool", "os Worker.contribute_to_object"),
            *_below("celery.concurrency.asynpool", "ResultHandler._recv_message AsynPool.on_job_ready"),
            *_below("celery.concurrency.asynpool", "_select set"),
        ),
        on_import=(
            ("multiprocessing.connection", "libraries.multiprocessing.messages:patch"),
            ("multiprocessing.pool", "libraries.multiprocessing.messages:patch_pool"),
            ("multiprocessing.synchronize", "libraries.multiprocessing.locks:patch"),
            ("multiprocessing.sharedctypes", "libraries.multiprocessing.locks:patch_values"),
            ("multiprocessing.connection", "libraries.multiprocessing.listeners:patch"),
            ("multiprocessing.util", "libraries.multiprocessing.listeners:patch_folders"),
            ("multiprocessing.managers", "libraries.multiprocessing.listeners:patch_managers"),
            ("multiprocessing.reduction", "libraries.multiprocessing.listeners:patch_handles"),
            ("multiprocessing.resource_sharer", "libraries.multiprocessing.listeners:patch_sender"),
            ("concurrent.futures.process", "libraries.multiprocessing.listeners:patch_sender"),
            ("billiard.connection", "libraries.multiprocessing.messages:patch"),
            ("billiard.connection", "libraries.multiprocessing.celery_pools:patch_connections"),
            ("billiard.synchronize", "libraries.multiprocessing.locks:patch"),
            ("billiard.sharedctypes", "libraries.multiprocessing.locks:patch_values"),
            ("billiard.heap", "libraries.multiprocessing.celery_pools:patch_memory"),
            ("billiard.pool", "libraries.multiprocessing.celery_pools:patch_workers"),
            ("celery.concurrency.asynpool", "libraries.multiprocessing.celery_pools:patch_pool"),
        ),
        guards=False,
    ),
    Boundary(
        "machine",
        CAUSAL,
        "choice",
        "reads: process id, host name, processors, load, terminals",
        "values of the replaying machine are used",
        (
            *_below("os", "cpu_count process_cpu_count getlogin getloadavg uname getpid getppid"),
            *_below("os", "get_terminal_size isatty kill"),
            *_below("platform", "uname _Processor.from_subprocess"),
            "socket.gethostname",
            *_below("sys", "stdin.isatty stdout.isatty stderr.isatty"),
        ),
        at_start=("libraries.system.machine:watch",),
        guards=False,
    ),
    Boundary(
        "network",
        CAUSAL,
        "level",
        "effects: connections that no other boundary covers",
        "other connections are refused",
        ("sys.addaudithook",),
        at_start=("libraries.system.network:watch",),
    ),
    Boundary(
        "timers",
        CAUSAL,
        "level",
        "wakes: expired sleeps, timers and timeouts",
        "sleeps and timers end in virtual time",
        (
            "time.sleep",
            *_below("asyncio.base_events.BaseEventLoop", "call_at call_later time"),
            *_below("uvloop.Loop", "call_at call_later time"),
            *_below("threading", "Condition.wait Condition.notify Thread.join Thread.is_alive _time"),
            "queue.time",
            "concurrent.futures._base.time",
            *_below("gevent.monkey", "patch_all patch_thread"),
        ),
        at_start=(
            "scheduler.hooks.timers:watch",
            "scheduler.hooks.waits:watch_waits",
            "scheduler.hooks.timers:watch_clock",
        ),
        on_import=(
            ("uvloop", "scheduler.hooks.timers:patch_uvloop"),
            ("gevent.monkey", "scheduler.hooks.foreign_runtimes:hook_gevent"),
        ),
    ),
    Boundary(
        "order",
        CAUSAL,
        "level",
        "arrivals: data received in one tick of an event loop, results of jobs, ends of threads",
        "responses arrive in the order of the tape",
        (
            *_below("asyncio.futures", "_chain_future _copy_future_state"),
            *_below("asyncio", "as_completed tasks.as_completed"),
            "concurrent.futures.as_completed",
        ),
        at_start=(
            "scheduler.hooks.completion_order:watch",
            "scheduler.hooks.completion_order:watch_jobs",
        ),
    ),
    Boundary(
        "hashes",
        CAUSAL,
        "level",
        "nothing: sets of tasks, futures and threads keep their order",
        "the order of these sets may differ",
        (
            *_below("asyncio", "Future Task futures.Future tasks.Task"),
            *_below("asyncio", "eager_task_factory tasks.eager_task_factory"),
            "asyncio.tasks._GatheringFuture.__hash__",
            "concurrent.futures._base.Future.__hash__",
            "threading.Thread.__hash__",
            "kombu.transport.virtual.base.Channel.__hash__",
            "vine.promises.promise.__hash__",
        ),
        at_start=("scheduler.hooks.hashes:watch",),
        on_import=(
            ("kombu.transport.virtual.base", "scheduler.hooks.hashes:patch_kombu"),
            ("vine.promises", "scheduler.hooks.hashes:patch_vine"),
        ),
    ),
    Boundary(
        "locks",
        STRICT,
        "level",
        "turns: one thread runs at a time",
        "the operating system schedules threads",
        (
            *_below("threading", "Lock RLock"),
            "queue.SimpleQueue",
            *_below("concurrent.futures.thread", "_WorkItem.__init__ _WorkItem.run"),
            *_below(
                "concurrent.futures.thread.ThreadPoolExecutor", "submit shutdown _initializer_failed"
            ),
            *_below("asyncio.base_events.BaseEventLoop", "call_soon_threadsafe run_forever"),
            "uvloop.Loop.run_forever",
        ),
    ),
    Boundary(
        "runtimes",
        STRICT,
        "level",
        "the level in the exit fact: causal if gevent, eventlet, trio, nest_asyncio or Jupyter runs",
        "this runtime runs unchanged",
        (
            "nest_asyncio.apply",
            "nest_asyncio2.apply",
            "eventlet.monkey_patch",
            "trio.run",
            "trio.lowlevel.start_guest_run",
        ),
        on_import=(
            ("nest_asyncio", "scheduler.hooks.foreign_runtimes:hook_nest_asyncio"),
            ("nest_asyncio2", "scheduler.hooks.foreign_runtimes:hook_nest_asyncio"),
            ("eventlet", "scheduler.hooks.foreign_runtimes:hook_eventlet"),
            ("trio", "scheduler.hooks.foreign_runtimes:hook_trio"),
            ("trio.lowlevel", "scheduler.hooks.foreign_runtimes:hook_trio_guest"),
            ("ipykernel.kernelapp", "scheduler.hooks.foreign_runtimes:hook_ipykernel"),
        ),
    ),
)
"""The rows, in the order in which they are installed."""

BY_NAME: Final = {row.name: row for row in BOUNDARIES}


def has(level: Level, row: Boundary) -> bool:
    """Whether ``level`` includes ``row`` by default."""
    return row.level is not None and LEVELS.index(row.level) <= LEVELS.index(level)


def selected(level: Level, changes: str = "", disabled: Iterable[str] = ()) -> tuple[Boundary, ...]:
    """Return the rows that a recording at ``level`` installs.

    ``changes``: the setting ``boundaries``: ``+clock,-http.urllib3``. ``disabled``: names to remove, if
    they are rows that can be chosen and ``changes`` does not add them; other names are ignored.
    Raise `ConfigurationError` for unknown names in ``changes`` and for rows that cannot be chosen.

    >>> [row.name for row in selected("exchanges", "+clock", ["grpc"]) if row.name[:2] in ("cl", "gr")]
    ['grpc.aio', 'clock']
    """
    chosen = {row.name: has(level, row) for row in BOUNDARIES}
    for name in disabled:
        if name in BY_NAME and BY_NAME[name].choice == "choice":
            chosen[name] = False
    for sign, name in parse(changes):
        chosen[name] = sign == "+"
    return tuple(row for row in BOUNDARIES if chosen[row.name])


def parse(changes: str) -> list[tuple[str, str]]:
    """Return the signs and names of the setting ``boundaries``. `ConfigurationError`: see `selected`.

    >>> parse(" +clock, -http.urllib3")
    [('+', 'clock'), ('-', 'http.urllib3')]
    """
    found: list[tuple[str, str]] = []
    for word in changes.replace(",", " ").split():
        sign, name = word[:1], word[1:]
        if sign not in ("+", "-"):
            raise ConfigurationError(
                f"boundaries: {word!r} has no sign",
                hint=f"write +{word} to add it, or -{word} to remove it",
            )
        row = BY_NAME.get(name)
        if row is None:
            near = nearest(name, BY_NAME)
            hint = f"did you mean {near}?" if near else "playhead doctor lists all"
            raise ConfigurationError(f"boundaries: unknown name {name!r}", hint=hint)
        if row.choice == "always":
            raise ConfigurationError(f"boundaries: {name} cannot be changed: every recording has it")
        if row.choice == "level":
            raise ConfigurationError(
                f"boundaries: {name} depends on the level only", hint=f"level {row.level} has it"
            )
        found.append((sign, name))
    return found


def at_replay(recorded: Iterable[str]) -> tuple[Boundary, ...]:
    """Return the rows that a replay installs; ``recorded``: names of the rows that the recording had."""
    had = set(recorded)
    return tuple(row for row in BOUNDARIES if row.guards or row.name in had)


def had(start: Mapping[str, Any]) -> list[str]:
    """Return the names of the boundaries of a recording, from its process-start fact.

    Old recordings do not list them: they had all boundaries of their level.
    """
    told = start.get(a.PLAYHEAD_RUN_BOUNDARIES)
    if isinstance(told, list):
        return [str(name) for name in cast("list[object]", told)]
    level = start.get(a.PLAYHEAD_RUN_LEVEL)
    return names([row for row in BOUNDARIES if has(STRICT if level == STRICT else CAUSAL, row)])


def unkept(recorded: Iterable[str], level: str) -> dict[str, str]:
    """Return the boundaries that a recording lacks, with the lowest level that includes each.

    ``recorded``: names of those that it had. Compared are those of its ``level``, and of `CAUSAL` at
    least, without those that need a library which the program may not import.
    """
    had = set(recorded)
    known = level if level in LEVELS else CAUSAL
    wanted = max(LEVELS.index(CAUSAL), LEVELS.index(known))
    return {
        row.name: row.level
        for row in BOUNDARIES
        if row.level is not None
        and LEVELS.index(row.level) <= wanted
        and row.name not in had
        and row.is_compared
        and not _comes_with_a_library(row)
    }


def _comes_with_a_library(row: Boundary) -> bool:
    roots = {module.partition(".")[0] for module, _ in row.on_import}
    whole = row.choice == "level" and not row.at_start
    return whole and bool(roots) and roots.isdisjoint(sys.stdlib_module_names)


def names(rows: Sequence[Boundary]) -> list[str]:
    """Return the names of rows."""
    return [row.name for row in rows]
