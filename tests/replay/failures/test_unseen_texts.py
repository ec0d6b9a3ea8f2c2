"""Texts of results and of errors that the rules were not made from have the right meaning."""

from __future__ import annotations

import pytest

from playhead_genai.messages import ToolCallResponse
from playhead_genai.tool_results import error_of
from playhead_replay.failures.codes import FailureType, code_of, orchestration_code
from playhead_replay.failures.retrieval import is_empty

FINE = """
Request for comments: please review
The service was excellent
API documentation: https://x
Server room is in building 3
Connection to flight LH 42 closes at 9
The call lasted 5 minutes
Operation successful
Database schema: orders(id, total)
Network of 12 stores
Session started at 9
Key findings: revenue failed to grow
Token count: 512
Command reference: ls, cd
The command line tool has an error flag -e
Search results are ranked by error rate
Tool use: call search, then read
The server returned 3 rows; none expired
Error code reference
Errors and omissions insurance covers 1 M EUR
Error-free deployment since May
error_count=0
Timeout for players is 60 seconds in basketball
Time out in Oslo: the best cafés
Forbidden City, Beijing
Unauthorized Living is a TV series
Access denied (film), 2024
Invalid: 0, valid: 12
Login required: yes
Permission denied is errno 13 in POSIX
Could not load more than 10 boxes per truck
Cannot open before 9 am on Sundays
Authentication required: no; price: 3 EUR
Connection reset button is on the back
Service unavailable on Sundays; open Monday to Saturday
404 rooms in the hotel
500 internal combustion engines
503 service requests are open
Not authorized dealers sell it cheaper
-- error bars are 95 % --
Token expired on 3 May and was renewed; status active
Tool failure analysis: gear 3 is worn
The operation failed twice in 1986 and succeeded in 1988
The rate limited by law is 5 %
Database error rate: 0.1 %
Query error log is empty
Rate limit: 100 requests per minute
Connection error handling is documented in chapter 5
Network error rate 0.1 %, uptime 99.9 %
API error codes: 400, 401, 404
Session expired tokens: 3
The service failed its inspection in 2021 and passed in 2022
Authentication error rate: 0.2 %
{"message":"Connection refused is errno 111"}
{"detail":"Time out in Oslo"}
{"message":"Error budget: 3 %","status":"active"}
{"code":450,"type":"room","message":"free"}
{"reason":"late","status":"shipped"}
{"err":0,"value":3}
{"exception":"none","days":[]}
{"failed":true,"student":"Ann"}
{"status":"Failed","build":3,"reason":"x"}
{"path":"/a","status":"active"}
{"type":"fault","id":7}
{"fault":"gearbox","car":"VW","cost":400}
{"err":"±0.1","mean":3.2}
{"exception":"public holidays","open":"9-17"}
{"error_message":"","value":1}
{"errorMessage":null,"v":2}
""".strip().splitlines()
"""Results of tools that are about failures, and are none."""

FAILED = """
Error: the station "Oslo" does not exist
Error calling tool: timeout
Request timed out
Request timed out.
The request timed out after 30 seconds
Connection to the server was refused
The server returned an error: 500
The API returned status code 502
Server error: 500
Failed to get weather data: 503
Weather service unavailable
The weather service is currently unavailable
An error has occurred
An unknown error occurred.
Something went wrong
Something went wrong while fetching the order
HTTP 401: Unauthorized
Status code: 500
Status: 404 Not Found
Error 500: Internal Server Error
500 Internal Server Error
500 - Internal Server Error
API error: invalid key
Invalid API key.
Invalid credentials
Authentication failed: bad token
Missing API key
Rate limit exceeded. Try again in 20 s.
Database connection failed
Could not reach the server
could not connect: ECONNREFUSED
ECONNREFUSED 10.0.0.1:80
connect ECONNREFUSED 10.0.0.7:5432
fetch failed
socket hang up
getaddrinfo ENOTFOUND api.example
read ECONNRESET
Uncaught exception: x
Runtime error: division by zero
Exception in thread: x
TypeError: x is not a function
KeyError: 'temperature'
KeyError('temperature')
<error>timeout</error>
Fatal error: out of memory
fatal: not a git repository
FAILED: no such table
bash: foo: command not found
curl: (7) Failed to connect to shop port 80
Permission denied
You are not authorized to view this order
Quota exceeded
No response from server
""".strip().splitlines()
"""Results of tools that failed."""

EMPTY = """
No results for your query.
No documents retrieved.
0 matches
No relevant passages found.
Zero results.
No relevant information was found.
I found no documents about that.
We couldn't find any results.
No result
No results available
The query returned 0 rows
Query returned no rows.
No articles match 'x'.
No relevant context was found for the query.
The index contains no documents.
There were no hits.
No matching documents
no entries match
Nothing relevant found.
No web pages found
Could not find any relevant documents.
Your query did not match any articles.
Search returned nothing.
[NO RESULTS]
{"matches":[],"namespace":""}
{"objects":[]}
{"hits":[],"nbHits":0,"page":0}
{"result":{"docs":[]}}
{"results":[],"suggestion":"try fewer words"}
{"status":"success","data":{"documents":[]}}
{"results":[[]]}
{"documents":null,"count":0}
{"total_count":0,"incomplete_results":false,"items":[]}
{"organic_results":[],"error":null}
{"results":"No results found"}
{"success":true,"results":[],"message":"0 results"}
{"success":true,"results":[],"message":"Search completed successfully"}
{"results":[],"answer":"No answer found"}
""".strip().splitlines()
"""Results of searches that found nothing."""

FULL = """
No information may be passed to third parties.
No results will be published before May.
No pages were harmed.
There is no fee.
The search party found 3 hikers.
We have no refund policy for digital goods.
The index has no documents older than 2020; the newest is from May.
No match was postponed; Oslo won 3-1.
No source of income is needed.
I found no reason to refuse the refund.
The query was about shoes.
Empty boxes are returned free of charge.
Found: 3 documents.
Could not find a better price? We match it.
0 % interest for 12 months
No documents? Bring your passport.
{"results":[{"text":"no results"}]}
{"output":"Refunds take 5 days"}
{"title":"Refunds","sections":[]}
{"documents":["x"],"errors":[]}
{"text":"x","entities":[],"links":[]}
{"result":"Refunds take 5 days"}
{"hits":{"total":1,"hits":[{"_id":"1"}]}}
{"data":{"id":7,"tags":[]}}
{"score":0.1,"chunk":"x","images":[]}
""".strip().splitlines()
"""Results of searches that found something."""

ERRORS: dict[tuple[FailureType, str], list[str]] = {
    ("tool", "timeout"): [
        "upstream did not reply in time",
        "Gateway timed out",
        "ReadTimeoutError",
        "TimeoutExpired: Command '['x']' timed out after 5 seconds",
        "playwright timeout 5000ms exceeded",
        "the operation took 31 s, more than the limit of 30 s",
        "request exceeded 10s deadline",
        "stream idle timeout",
        "Task exceeded maximum runtime",
        "gave no answer for 20 s",
    ],
    ("tool", "connection_error"): [
        "[Errno 110] connect failed",
        "httpcore.ConnectError: All connection attempts failed",
        "Temporary failure in name resolution",
        "requests.exceptions.ChunkedEncodingError: ('Connection broken: IncompleteRead(20 bytes read)')",
        'connection to server at "10.0.0.7", port 5432 failed',
        "[Errno 32] Broken pipe",
        "Host is down",
        "SSL: WRONG_VERSION_NUMBER",
        "websocket connection closed unexpectedly",
        "ftp: could not reach host",
        "aiohttp.ServerDisconnectedError",
        "peer reset the connection",
        "unable to open a socket",
        "Failed to establish a new connection",
    ],
    ("tool", "auth_error"): [
        "Your token is invalid",
        "The API key you provided is incorrect",
        "Incorrect API key",
        "User lacks permission orders.read",
        "Error: not logged in",
        "credentials have expired",
        "AccessDeniedException",
        "403 forbidden",
        "invalid session",
        "Please authenticate",
        "requires scope read:org",
        "Unauthenticated",
    ],
    ("tool", "invalid_response"): [
        "Extra data: line 1 column 3 (char 2)",
        "Unterminated string starting at: line 1 column 2",
        "response was HTML, not JSON",
        "missing key 'temp' in response",
        "unexpected shape of response",
        "Invalid control character at: line 1",
        "bad gzip data",
        "Field 'price' missing from reply",
        "Got an empty body",
        "ValueError: no JSON object could be decoded",
        "the response failed validation",
        "expected an object, got a list",
    ],
    ("retrieval", "invalid_query"): [
        'ERROR: column "foo" does not exist',
        "no such function: foo",
        "query too long",
        "Invalid regex in query",
        "parse_exception",
        "unable to parse query string",
        "Unsupported where operator",
        "top_k must be positive",
        "filter field 'x' is not indexed",
        'near "FROM": syntax error',
        "Bad request: query",
        "mismatched input 'FORM'",
    ],
    ("retrieval", "connection_error"): [
        "Connection refused",
        "Vector database is unreachable",
        "could not connect to elasticsearch",
        "No connection could be made because the target machine actively refused it",
        "All hosts are down",
        "lost connection to index",
    ],
    ("model", "rate_limit"): [
        "Too Many Requests",
        "Rate limit exceeded",
        "You are being rate limited",
        "model overloaded",
        "Slow down!",
    ],
    ("model", "quota_exceeded"): [
        "You exceeded your current quota",
        "Monthly quota reached",
        "Your organization has insufficient funds",
        "credits exhausted",
        "spend limit reached",
    ],
    ("model", "context_length_exceeded"): [
        "maximum context length is 4096",
        "prompt exceeds context window",
        "Input too long",
        "too many tokens in prompt",
        "Request exceeds the token limit of the model",
    ],
}
ENDS: dict[str, list[str]] = {
    "max_retries_exceeded": [
        "Maximum retries exceeded",
        "max attempts (5) reached",
        "giving up after 3 failures",
        "Exceeded max_turns",
        "hit the step limit",
        "Agent reached iteration cap",
        "all attempts failed",
        "retry count exceeded",
        "the plan failed 3 times",
        "too many retries",
        "no progress after 10 steps",
        "RetryError[...]",
        "out of retries",
        "tool called too often: 20 of 20 attempts",
        "loop limit exceeded",
    ],
    "invalid_state": [
        "Cannot approve: order is in state 'cancelled'",
        "illegal transition",
        "already completed",
        "workflow is not running",
        "invalid status: cancelled",
        "not allowed in state 'done'",
        "Expected state PLANNING but was DONE",
        "conversation already closed",
        "missing state 'plan'",
        "graph is not compiled",
        "task not started",
        "unexpected phase: review",
        "agent must be initialized before run",
        "step out of order: ship before pay",
    ],
    "constraint_violation": [
        "cost cap of 1 USD exceeded",
        "Guardrail blocked the answer",
        "policy denied",
        "max spend reached",
        "not allowed to call delete_user",
        "exceeds budget",
        "human approval missing",
        "tool not on allowlist",
        "PII detected in output",
        "response contains prohibited content",
        "safety check failed",
        "invariant failed: total >= 0",
        "daily refund limit exceeded",
        "path outside of the sandbox",
        "denied by user",
    ],
    "uncaught_exception": [
        "division by zero",
        "list index out of range",
        "x is not defined",
        "unsupported operand",
        "can't multiply",
        "object is not iterable",
        "no attribute 'x'",
        "invalid literal for int()",
        "unhashable type",
        "cannot unpack",
        "bad magic number",
        "year 0 is out of range",
        "something broke",
        "missing 1 required positional argument",
        "math domain error",
    ],
}


@pytest.mark.parametrize(("results", "failed"), [(FINE, False), (FAILED, True)])
def test_a_result_says_whether_the_tool_failed(results: list[str], failed: bool):
    wrong = [
        one for one in results if bool(error_of(ToolCallResponse(response=one), "look_up")) != failed
    ]
    assert wrong == []


@pytest.mark.parametrize(("results", "empty"), [(EMPTY, True), (FULL, False)])
def test_a_result_says_whether_something_was_found(results: list[str], empty: bool):
    assert [one for one in results if is_empty(one) != empty] == []


def test_an_error_has_its_code():
    assert [
        (kind, code, found, text)
        for (kind, code), texts in ERRORS.items()
        for text in texts
        if (found := code_of(kind, text)) != code
    ] == []


def test_an_end_has_its_code():
    assert [
        (code, found, text)
        for code, texts in ENDS.items()
        for text in texts
        if (found := orchestration_code(f"RuntimeError: {text}")) != code
    ] == []
