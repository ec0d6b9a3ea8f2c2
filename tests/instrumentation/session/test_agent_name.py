"""The name of an agent, by the command that runs it."""

from pathlib import Path

import pytest

from playhead_instrumentation.libraries.inbound.applications import Application
from playhead_instrumentation.session.agent_name import named


@pytest.mark.parametrize(
    ("command", "agent"),
    [
        ("agents/refund.py --order 81", "refund"),
        ("-m package", "package"),
        ("-m package.__main__", "package"),
        ("-m package.refund", "refund"),
        ("-m package.main", "package"),
        ("package/__main__.py", "package"),
        ("app.py", "app"),
        ("-m celery -A shop worker --loglevel info", "shop"),
        ("/venv/bin/celery --app=shop.tasks worker", "shop"),
        ("/venv/bin/streamlit run pages/desk.py", "desk"),
        ("-m celery worker", "celery"),
    ],
)
def test_a_program_is_named_after_its_module(command: str, agent: str):
    assert named(*script_and_words(command)) == (agent, False)


@pytest.mark.parametrize(
    ("command", "agent"),
    [
        ("-m uvicorn app:app --port 8000", "app"),
        ("-m uvicorn --port 8000 desk:app", "desk"),
        ("/venv/bin/uvicorn desk.main:app --log-level info", "desk"),
        ("/venv/bin/gunicorn -w 4 -k uvicorn.workers.UvicornWorker shop.desk:make()", "desk"),
        ("/venv/bin/gunicorn -b localhost:8000 desk", "desk"),
        ("/venv/bin/gunicorn --bind=0.0.0.0:80 desk:create_app('x:y')", "desk"),
        ("/venv/bin/hypercorn desk:app -b 127.0.0.1:0", "desk"),
        ("-m flask --app desk run --port 0", "desk"),
        ("-m flask -A shop.desk:make run", "desk"),
        ("/venv/bin/fastapi run desk.py", "desk"),
        ("-m uvicorn", "uvicorn"),
    ],
)
def test_a_server_is_named_after_what_it_serves(command: str, agent: str):
    name = named(*script_and_words(command))
    assert (name.agent, name.serves) == (agent, True)
    assert name.process == f"{agent} server"


@pytest.mark.parametrize("script", ["", "-", "-c"])
def test_what_has_no_name_is_python(script: str):
    name = named(script, [script])
    assert (name.agent, name.process) == ("", "python")


def test_manage_is_named_after_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "shop").mkdir()
    monkeypatch.chdir(tmp_path / "shop")
    assert named("manage.py", ["manage.py", "runserver"]).agent == "shop"


@pytest.mark.parametrize(
    ("spelt", "agent"),
    [
        ("desk:app", "desk"),
        ("shop.desk:app", "desk"),
        ("desk.main:app", "desk"),
        ("app:app", "app"),
        ("__main__:app", ""),
        ("", ""),
    ],
)
def test_requests_have_the_name_that_the_server_has(spelt: str, agent: str):
    assert Application(spelt, "").name == agent


def script_and_words(command: str) -> tuple[str, list[str]]:
    words = command.split()
    if words[0] == "-m":
        return f"-m {words[1]}", words[1:]
    return words[0], words
