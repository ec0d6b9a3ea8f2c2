"""Who may look, and who may act."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from support.pages.chromium import Page
from support.pages.views import VIEWS, main_script
from support.starting.cli import refund, store_run
from support.tapes.batches import span_of

from playhead_receiver.auth import TokenBook
from playhead_receiver.auth.database import AccessFile
from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch

pytestmark = pytest.mark.browser

ACTS = {
    "POST /v1/runs/refund-1/fork": {"step": 1},
    "POST /v1/runs/refund-1/replay": {},
    "POST /v1/runs/refund-1/pause": {},
    "PUT /v1/runs/refund-1/marks/flagged": None,
    "DELETE /v1/runs/refund-1": None,
}


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[Receiver, dict[str, str]]]:
    """A receiver that asks for tokens, with refund-1, and a token of each of three scopes."""
    folder = tmp_path / "data"
    store_run(folder, refund())
    file = AccessFile(folder)
    tokens = {scope: TokenBook(file).create(scope, [scope])[1] for scope in ("read", "control", "admin")}
    file.close()
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(folder, Configuration(addresses, Access(guarded=True))) as receiver:
        while receiver.store.index():
            pass
        yield receiver, tokens


def test_a_token_is_taken_from_the_fragment_and_leaves_the_address(
    page: Page, guarded: tuple[Receiver, dict[str, str]]
):
    receiver, tokens = guarded
    page.open(f"{receiver.query_endpoint}/#token={tokens['read']}", "main tbody a")
    assert page.run("location.href") == f"{receiver.query_endpoint}/"
    page.open(f"{receiver.query_endpoint}/?run=refund-1", ".row")
    assert tokens["read"] not in " ".join(page.requested[1:])


def test_without_a_token_no_view_shows_anything(page: Page, guarded: tuple[Receiver, dict[str, str]]):
    receiver, _ = guarded
    for address, _ in VIEWS.values():
        page.open(receiver.query_endpoint + address)
        page.wait("document.body.innerText.includes('open the page with playhead open')")
        for told in ("success", "failure", "order 81 is", "gpt-4o", "search"):
            assert told not in page.text, address
    asked = [(status, url) for status, url in page.answered if "/v1/" in url or "/metrics" in url]
    assert len(asked) >= len(VIEWS)
    assert {status for status, _ in asked} == {401}


def test_every_route_refuses_a_page_without_a_token(
    page: Page, guarded: tuple[Receiver, dict[str, str]]
):
    receiver, tokens = guarded
    headers = {"authorization": f"Bearer {tokens['read']}"}
    described = httpx.get(f"{receiver.query_endpoint}/openapi.json", headers=headers).json()
    ways = [[method, path] for path, said in described["paths"].items() for method in said]
    page.open(f"{receiver.query_endpoint}/", "[role=alert]")
    found = page.run(f"""Promise.all({json.dumps(ways)}.map(async ([method, path]) => [
        path, (await fetch(path, {{method: method.toUpperCase()}})).status]))""")
    assert len(found) > 40
    assert {path for path, status in found if status != 401} == {"/health", "/ready"}


def test_who_may_read_looks_and_does_not_act(page: Page, guarded: tuple[Receiver, dict[str, str]]):
    receiver, tokens = guarded
    page.open(f"{receiver.query_endpoint}/#token={tokens['read']}", "main tbody a")
    for address, until in VIEWS.values():
        page.open(receiver.query_endpoint + address, until)
    page.open(receiver.query_endpoint + VIEWS["again"][0], ".detail .command")
    assert page.run("document.querySelectorAll('[name=fork], [name=replay]').length") == 0
    statuses = page.run(acting("", tokens["read"]))
    assert statuses == dict.fromkeys(ACTS, 403)
    headers = {"authorization": f"Bearer {tokens['read']}"}
    with httpx.Client(base_url=receiver.query_endpoint, headers=headers) as api:
        assert api.get("/v1/runs/refund-1/marks").json()["marks"] == []
        assert api.get("/v1/reruns").json()["reruns"] == []


def test_the_tenant_is_chosen_among_those_whose_tokens_were_handed_over(page: Page, tmp_path: Path):
    file = AccessFile(tmp_path)
    tokens = {name: TokenBook(file).create("who", ["read"], tenant=name)[1] for name in ("", "acme")}
    file.close()
    chosen = "document.querySelector('select[name=tenant]')"
    runs = "document.querySelectorAll('main tbody a').length"
    addresses = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(tmp_path, Configuration(addresses, Access(guarded=True))) as receiver:
        for tenant, numbers in (("", (1, 2, 3)), ("acme", (4, 5))):
            made = [span_of(bytes([number]) * 16, 1) for number in numbers]
            receiver.tenants.services(tenant).store.commit(Batch(made))
        page.open(f"{receiver.query_endpoint}/#token={tokens['acme']}", "main tbody a")
        page.wait("document.querySelector('main').innerText.includes('tenant acme')")
        assert page.run(runs) == 2
        page.run(f"location.hash = 'token={tokens['']}'")
        page.wait(f"{chosen}?.value === '' && {runs} === 3")
        assert page.run("location.hash") == ""
        page.run(f"{chosen}.value = 'acme', {chosen}.dispatchEvent(new Event('change'))")
        page.wait(f"{chosen}?.value === 'acme' && {runs} === 2")
    assert page.complaints == []


def test_tokens_are_shown_to_an_admin_alone(page: Page, guarded: tuple[Receiver, dict[str, str]]):
    receiver, tokens = guarded
    operations = f"{receiver.query_endpoint}/?view=operations"
    table = "document.querySelector('table[aria-label=tokens]')"
    page.open(f"{receiver.query_endpoint}/#token={tokens['read']}", "main tbody a")
    page.open(operations, "table[aria-label=retention]")
    page.wait("document.querySelector('main').innerText.includes('has no scope admin')")
    assert page.run(f"{table} === null")
    page.open(f"{receiver.query_endpoint}/#token={tokens['admin']}", "main tbody a")
    page.open(operations, "table[aria-label=tokens]")
    rows = page.run(
        f"[...{table}.tBodies[0].rows].map(row => [...row.cells].map(one => one.textContent))"
    )
    assert [(row[0], row[2], bool(row[4])) for row in rows] == [
        ("read", "read", True),
        ("control", "control", False),
        ("admin", "admin", True),
    ]
    for text in tokens.values():
        assert text.split("_", 2)[2] not in page.run("document.documentElement.outerHTML")


def acting(place: str, token: str) -> str:
    """A script that tries each act at a place, and gives its statuses; null where it got no answer."""
    return f"""(async acts => {{
      const found = {{}};
      for (const [what, body] of Object.entries(acts)) {{
        const [method, path] = what.split(' ');
        const token = {json.dumps(token)};
        const headers = {{...(token && {{authorization: `Bearer ${{token}}`}}),
          ...(body && {{'content-type': 'application/json'}})}};
        const asked = {{method, headers, body: body && JSON.stringify(body)}};
        found[what] = await fetch({json.dumps(place)} + path, asked).then(one => one.status, () => null);
      }}
      return found;
    }})({json.dumps(ACTS)})"""


@contextmanager
def elsewhere() -> Iterator[int]:
    """A site of somebody else on this machine. Its port."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><main>elsewhere</main>")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


READING = """(async (place, script) => {
  const got = [];
  const paths = ['/', '/v1/runs', '/v1/runs/refund-1/transcript', '/metrics'];
  for (const mode of ['cors', 'no-cors'])
    for (const address of [script, ...paths.map(path => place + path)])
      got.push(await fetch(address, {mode}).then(async one => (await one.text()).length, () => 0));
  return got;
})"""
WAYS_WITHOUT_SCRIPT = """(async (place, script) => {
  const loaded = [];
  const add = (tag, at) => new Promise(done => {
    const one = Object.assign(document.createElement(tag), at);
    one.onload = () => done(loaded.push(tag));
    one.onerror = () => done();
    document.body.append(one);
  });
  await add('script', {src: place + '/v1/runs'});
  await add('script', {src: script, type: 'module'});
  await add('link', {rel: 'stylesheet', href: script.replace('.js', '.css')});
  await add('img', {src: place + '/v1/runs'});
  await add('iframe', {src: place + '/', name: 'framed'});
  for (const act of ['fork', 'replay', 'pause']) {
    const form = Object.assign(document.createElement('form'), {method: 'post', target: 'framed',
      enctype: 'text/plain', action: `${place}/v1/runs/refund-1/${act}`});
    const json = {name: '{"step": 1, "x": "', value: '"}'};
    form.append(Object.assign(document.createElement('input'), json));
    document.body.append(form);
    form.submit();
    await new Promise(done => { document.querySelector('iframe').onload = done; });
  }
  return loaded;
})"""


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_page_of_another_origin_can_neither_read_nor_act(page: Page, receiver: Receiver, host: str):
    """At a receiver without tokens, which answers whoever is on this machine."""
    place, script = receiver.query_endpoint, main_script(receiver.query_endpoint)
    with elsewhere() as port:
        page.open(f"http://{host}:{port}/")
        assert page.run(f"{READING}({json.dumps(place)}, {json.dumps(script)})") == [0] * 10
        assert page.run(acting(place, "")) == dict.fromkeys(ACTS)
        loaded = page.run(f"{WAYS_WITHOUT_SCRIPT}({json.dumps(place)}, {json.dumps(script)})")
        assert set(loaded) <= {"iframe"}  # which loads what says why there is nothing
        page.wait("true")
    assert any("frame-ancestors" in one for one in page.complaints)
    answers = [status for status, url in page.answered if url.startswith(f"{place}/") and url[-1] != "/"]
    assert len(answers) >= 8
    assert set(answers) == {403}
    api = httpx.Client(base_url=place)
    assert api.get("/v1/runs/refund-1/marks").json()["marks"] == []
    assert api.get("/v1/reruns").json()["reruns"] == []
    assert [one["name"] for one in api.get("/v1/runs").json()["runs"]] == ["refund-1"]
