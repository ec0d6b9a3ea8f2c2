"""Texts of errors, as providers, clients and tools write them, have their codes."""

from __future__ import annotations

from playhead_genai.messages import ToolCallResponse
from playhead_genai.tool_results import error_of
from playhead_replay.failures.codes import FailureType, code_of, orchestration_code
from playhead_replay.failures.retrieval import is_empty

MODEL = {
    "rate_limit": [
        (
            429,
            "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000",
        ),
        (
            429,
            "This request would exceed your rate limit of 40,000 tokens per minute",
        ),
        (429, "Quota exceeded for quota metric 'Generate Content API requests per minute'"),
        (529, "Overloaded"),
        (503, "The model is overloaded. Please try again later."),
        (None, "ThrottlingException: Too many requests, please wait before trying again."),
        (None, "StatusCode.RESOURCE_EXHAUSTED"),
        (429, "Requests rate limit exceeded"),
        (429, "Too many tokens, please wait before trying again."),
    ],
    "context_length_exceeded": [
        (
            400,
            "This model's maximum context length is 8192 tokens. You asked for 9001",
        ),
        (400, "prompt is too long: 213410 tokens > 200000 maximum"),
        (400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        (400, "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum"),
        (400, "too many tokens: size limit exceeded by 11326 tokens. Try using shorter or fewer inputs"),
        (413, "Request exceeds the maximum size"),
        (400, "the request exceeds the available context size, try increasing it"),
        (400, "This model's maximum prompt length is 131072 but the request contains 140000 tokens."),
        (None, "ValidationException: Input is too long for requested model."),
        (400, "Please reduce the length of the messages or completion."),
    ],
    "quota_exceeded": [
        (429, "You exceeded your current quota, please check your plan and billing details."),
        (400, "Your credit balance is too low to access the Anthropic API."),
        (402, "Insufficient Balance"),
        (402, "This request requires more credits, or fewer max_tokens."),
        (403, "Your team has either used all available credits or reached its monthly spending limit."),
        (429, "You are using a Trial key, which is limited to 1000 API calls / month."),
        (429, "Quota exceeded: monthly limit of 1000000 tokens"),
        (None, "ServiceQuotaExceededException: Your account has reached its quota"),
        (400, "You have reached your specified API usage limits."),
    ],
    "timeout": [
        (None, "openai.APITimeoutError: Request timed out."),
        (None, "anthropic.APITimeoutError: Request timed out or interrupted."),
        (504, "upstream request timeout"),
        (408, "Request Timeout"),
        (None, "httpx.ReadTimeout: "),
        (None, "StatusCode.DEADLINE_EXCEEDED: Deadline Exceeded"),
        (None, "ReadTimeoutError: Read timeout on endpoint URL"),
        (524, "A timeout occurred"),
    ],
    "invalid_output": [
        (None, "malformed_response: the body is no JSON"),
        (None, "pydantic_core._pydantic_core.ValidationError: 1 validation error for Order"),
        (None, "langchain_core.exceptions.OutputParserException: Could not parse LLM output"),
        (None, "pydantic_ai.exceptions.UnexpectedModelBehavior: Exceeded maximum retries (1)"),
        (None, "agents.exceptions.ModelBehaviorError: Tool pay not found in agent shop"),
    ],
}
TOOL = {
    "timeout": [
        (None, "asyncio.TimeoutError"),
        (None, "Error: Command '['pytest']' timed out after 60 seconds"),
        (None, "The tool did not respond within 30 seconds"),
        (
            None,
            "ReadTimeout: HTTPConnectionPool(host='shop', port=80): Read timed out.",
        ),
        (None, "Error: HTTP 504"),
        (None, "net::ERR_TIMED_OUT at https://shop.example"),
        (None, "canceling statement due to statement timeout"),
    ],
    "connection_error": [
        (None, "httpx.ConnectError: [Errno 111] Connection refused"),
        (
            None,
            "ConnectionError: HTTPConnectionPool: Max retries exceeded with url: /",
        ),
        (None, "FetchError: request to http://shop failed, reason: connect ECONNREFUSED 10.0.0.7:80"),
        (None, "Error: getaddrinfo ENOTFOUND shop.example"),
        (None, "Could not connect to Redis at shop:6379"),
        (None, "OSError: [Errno 101] Network is unreachable"),
        (None, "http.client.RemoteDisconnected: Remote end closed connection without response"),
        (None, "McpError: Connection closed"),
        (None, "ssl.SSLError: certificate verify failed"),
        (None, 'could not translate host name "db" to address: Temporary failure in name resolution'),
        (None, "BrokenPipeError: [Errno 32] Broken pipe"),
        (None, "StatusCode.UNAVAILABLE: failed to connect to all addresses"),
    ],
    "auth_error": [
        (401, ""),
        (403, "Forbidden"),
        (None, "Error: Invalid API key provided"),
        (None, "PermissionError: [Errno 13] Permission denied: '/etc/passwd'"),
        (None, "botocore.exceptions.NoCredentialsError: Unable to locate credentials"),
        (None, "AccessDeniedException: User is not authorized to perform dynamodb:Query"),
        (None, "The security token included in the request is expired"),
        (None, 'password authentication failed for user "agent"'),
        (None, "Error: token has expired"),
        (None, "Bad credentials"),
        (None, "ExpiredTokenException: The provided token has expired"),
        (None, "jwt expired"),
    ],
    "invalid_response": [
        (None, "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"),
        (None, "SyntaxError: Unexpected token < in JSON at position 0"),
        (None, "httpx.DecodingError: Error -3 while decompressing data: incorrect header check"),
        (None, "ValidationError: 2 validation errors for Weather"),
        (None, "The server returned an unexpected response format"),
        (None, "KeyError: response is missing expected field 'temperature'"),
        (None, "Error: Response is not valid JSON"),
        (None, "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff"),
        (None, "xml.etree.ElementTree.ParseError: not well-formed (invalid token): line 1"),
        (None, "http.client.BadStatusLine: garbage"),
        (None, "output does not match schema: 'price' is a required property"),
    ],
    "api_error": [
        (500, "Internal Server Error"),
        (503, "Service Unavailable"),
        (404, "Not Found"),
        (None, "Error: no such order"),
        (None, "502 Bad Gateway"),
        (None, "database is locked"),
        (None, "ValueError: amount must be positive"),
    ],
}
RETRIEVAL = {
    "timeout": [(None, "ConnectionTimeout caused by - ReadTimeoutError"), (None, "Search timed out")],
    "connection_error": [
        (
            None,
            "ResponseHandlingException: [Errno 111] Connection refused",
        ),
        (None, "elastic_transport.ConnectionError: Connection error caused by: NewConnectionError"),
        (None, "Failed to connect to Milvus server"),
        (None, "weaviate.exceptions.WeaviateConnectionError"),
    ],
    "invalid_query": [
        (400, "parsing_exception"),
        (422, "Unprocessable Entity"),
        (None, 'sqlite3.OperationalError: near "SELEC": syntax error'),
        (None, 'psycopg.errors.UndefinedColumn: column "nam" does not exist'),
        (None, "neo4j.exceptions.CypherSyntaxError: Invalid input 'MTCH'"),
        (None, "Error: malformed query"),
        (None, "ValueError: Expected where operator to be one of $gt, $lt, got $foo: invalid filter"),
        (None, "sqlite3.OperationalError: no such column: nam"),
        (None, "Vector dimension error: expected dim: 1536, got 768"),
        (None, 'fts5: syntax error near "*"'),
        (None, "Error: query must not be empty"),
    ],
}


def test_an_error_has_its_code():
    tables: list[tuple[FailureType, dict[str, list[tuple[int | None, str]]]]] = [
        ("model", MODEL),
        ("tool", TOOL),
        ("retrieval", RETRIEVAL),
    ]
    wrong = [
        (kind, code, found, text)
        for kind, table in tables
        for code, texts in table.items()
        for status, text in texts
        if (found := code_of(kind, text, status)) != code
    ]
    assert wrong == []


ORCHESTRATION = {
    "max_retries_exceeded": [
        "langgraph.errors.GraphRecursionError: Recursion limit of 25 reached",
        "MaxTurnsExceeded: Max turns (10) exceeded",
        "tenacity.RetryError: RetryError[<Future at 0x7f>]",
        "UsageLimitExceeded: The next request would exceed the request_limit of 50",
        "RuntimeError: Agent stopped due to iteration limit or time limit.",
        "Exception: maximum number of attempts reached",
        "RuntimeError: retries exhausted",
        "MaxStepsReached: 30",
        "RuntimeError: too many attempts",
        "RuntimeError: all 3 retries failed",
        "RuntimeError: no answer after 12 searches",
        "StopError: exceeded maximum iterations (15)",
    ],
    "invalid_state": [
        "langgraph.errors.InvalidUpdateError: Expected dict, got 1",
        "asyncio.exceptions.InvalidStateError: Result is not set.",
        'transitions.core.MachineError: "Can\'t trigger event ship from state refunded!"',
        "InvalidTransition: planning → done",
        "RuntimeError: illegal state: no plan",
        "AssertionError: agent in unexpected state 'idle'",
        "statemachine.exceptions.TransitionNotAllowed: Can't ship when in Refunded.",
        "WorkflowStateError: step 3 before step 2",
    ],
    "constraint_violation": [
        "agents.exceptions.InputGuardrailTripwireTriggered: Guardrail triggered tripwire",
        "BudgetExceededError: spent 1.20 of 1.00 USD",
        "ValueError: policy violation: refund over 100 EUR",
        "RuntimeError: cost limit exceeded",
        "PermissionError: tool delete_all is not allowed",
        "ConstraintViolation: at most 3 searches",
        "RuntimeError: token budget exhausted",
        "SystemExit: blocked by content policy",
    ],
    "uncaught_exception": [
        "KeyError: 'state'",
        "ZeroDivisionError: division by zero",
        "TypeError: 'NoneType' object is not subscriptable",
        "ValueError: invalid literal for int() with base 10: 'x'",
        "RecursionError: maximum recursion depth exceeded",
        "FileNotFoundError: [Errno 2] No such file or directory: 'plan.md'",
        "AssertionError",
        "RuntimeError: something went wrong",
        "IndexError: list index out of range",
        "UnboundLocalError: cannot access local variable 'step'",
    ],
}


def test_an_exception_at_the_end_has_its_code():
    wrong = [
        (code, found, text)
        for code, texts in ORCHESTRATION.items()
        for text in texts
        if (found := orchestration_code(text)) != code
    ]
    assert wrong == []


FAILED = [
    ("look_up", "Error: no such order"),
    ("look_up", "Error executing tool look_up: no such order"),
    ("look_up", "HTTP 500"),
    ("look_up", "404 Not Found"),
    ("look_up", "Failed to fetch the order: 500"),
    ("look_up", "ToolException: closed"),
    ("look_up", "requests.exceptions.ReadTimeout: no answer"),
    ("look_up", '{"status": "error", "message": "closed"}'),
    ("look_up", '{"isError": true, "content": [{"type": "text", "text": "closed"}]}'),
    ("look_up", '{"errors": [{"message": "closed"}], "data": null}'),
    ("look_up", "Rate limited: HTTP 429 Too Many Requests"),
    ("look_up", "The request to the shop failed with status 500"),
    ("look_up", '{"success": false}'),
    ("look_up", '{"statusCode": 503, "body": "down"}'),
    ("read_logs", '{"error": "no such file"}'),
    ("run_tests", "Traceback (most recent call last): …"),
    ("run_tests", "Error: FileNotFoundError: no tests"),
]
"""Tools, and results that report a failure."""
FINE = [
    ("look_up", "no errors"),
    ("look_up", "Errors: 0"),
    ("look_up", '{"error": ""}'),
    ("look_up", '{"error": false, "rows": 3}'),
    ("look_up", '{"ok": true, "error": "ignored"}'),
    ("look_up", '{"status": "ok", "errors": []}'),
    ("look_up", '{"status": 200}'),
    ("look_up", "404 notes were found"),
    ("look_up", '{"status": "failed", "order": 81, "message": "the payment failed"}'),
    ("read_logs", "Error: disk full"),
    ("explain_error", '{"error": "E42", "meaning": "the disk is full"}'),
    ("check_stock", '{"ok": false, "reason": "none left"}'),
    ("search_docs", "Error handling in Go"),
    ("search_docs", "Service levels: 99.9 % of requests end without an error"),
]


def test_a_result_that_reports_a_failure_is_told_from_others():
    def fails(tool: str, result: str) -> bool:
        return error_of(ToolCallResponse(response=result), tool) != ""

    assert [one for one in FAILED if not fails(*one)] == []
    assert [one for one in FINE if fails(*one)] == []


RESULTS = [
    ("", True),
    ("null", True),
    ("No results found for 'refund'.", True),
    ("0 documents matched your query", True),
    ("Nothing found", True),
    ("I could not find any matching articles.", True),
    ('{"organic_results": [], "search_metadata": {"id": "x"}}', True),
    ('{"data": {"Get": {"Docs": []}}}', True),
    ('{"ids": [[]], "documents": [[]], "distances": [[]]}', True),
    ('{"total": 0}', True),
    ('{"results": [], "query": "x", "took": 3, "status": "ok"}', True),
    ('{"results": [], "answer": null}', True),
    ("No refunds are possible after 30 days.", False),
    ('{"results": [{"id": 1}], "errors": []}', False),
    ('{"text": "found"}', False),
    ('{"documents": [["a"]], "metadatas": [[]]}', False),
    ("[0]", False),
    ("0", False),
]


def test_an_empty_result_is_told_from_others():
    assert [one for one in RESULTS if is_empty(one[0]) != one[1]] == []
