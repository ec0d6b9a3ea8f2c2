"""Responses that OTLP over HTTP and gRPC share: errors as statuses, and the receiver's versions."""

from __future__ import annotations

from importlib.metadata import version

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc import code_pb2
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status

from playhead_core.errors import PlayheadError, StoreError, TooLarge, UsageError
from playhead_core.facts import SCHEMA_VERSION
from playhead_core.otlp_bytes import VERSION
from playhead_receiver.auth.guard import Forbidden, Unauthenticated
from playhead_receiver.ingest.budget import RETRY_AFTER_S, Overloaded
from playhead_receiver.ingest.encodings import UnsupportedEncoding


class Misdirected(UsageError):
    """The request is for another receiver."""


def http_status(problem: PlayheadError) -> int:
    """HTTP status of a refusal. Only 421, 429 and 503 ask the sender to try again."""
    if isinstance(problem, Misdirected):
        return 421
    if isinstance(problem, Overloaded):
        return 429
    if isinstance(problem, StoreError):
        return 503
    if isinstance(problem, TooLarge):
        return 413
    if isinstance(problem, UnsupportedEncoding):
        return 415
    if isinstance(problem, Unauthenticated):
        return 401
    if isinstance(problem, Forbidden):
        return 403
    return 400


def status_of(problem: PlayheadError) -> Status:
    """The `google.rpc.Status` of a refusal, with `RetryInfo` or `BadRequest` where they apply."""
    code = code_pb2.INVALID_ARGUMENT
    detail = AnyMessage()
    if isinstance(problem, StoreError):
        code = code_pb2.UNAVAILABLE
        detail.Pack(RetryInfo(retry_delay=Duration(seconds=RETRY_AFTER_S)))
    elif isinstance(problem, TooLarge):
        code = code_pb2.RESOURCE_EXHAUSTED
    elif isinstance(problem, Unauthenticated):
        code = code_pb2.UNAUTHENTICATED
    elif isinstance(problem, Forbidden):
        code = code_pb2.PERMISSION_DENIED
    else:
        violation = BadRequest.FieldViolation(field="body", description=problem.what)
        detail.Pack(BadRequest(field_violations=[violation]))
    words = ": ".join(part for part in (problem.what, problem.cause) if part)
    status = Status(code=code, message=words)
    if detail.type_url:
        status.details.append(detail)
    return status


def is_retryable(problem: PlayheadError) -> bool:
    """Whether the sender is asked to try again."""
    return isinstance(problem, StoreError)


SERVICE, METHOD = "playhead.v1.Receiver", "About"
"""Names of the gRPC call. It returns the same JSON as over HTTP."""


def about() -> dict[str, str | int]:
    """Versions of the receiver, of the facts that it stores, and of the windows that it reads."""
    return {"playhead": version("playhead-receiver"), "schema": SCHEMA_VERSION, "windows": VERSION}
