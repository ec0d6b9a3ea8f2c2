"""A FastAPI service under uvicorn: one of its requests waits, the others go on."""

from __future__ import annotations

import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.outside.controlling import on_stage, said_back
from support.starting.running import until
from support.starting.services import RecordedService, identical

SERVICE = """
    from fastapi import FastAPI
    from openai import AsyncOpenAI

    app = FastAPI()
    client = AsyncOpenAI(max_retries=0)

    @app.post("/ask")
    async def ask(text: str):
        answer = await client.chat.completions.create(
            model="gpt-5.5", messages=[{"role": "user", "content": text}]
        )
        return {"answer": answer.choices[0].message.content}

    @app.get("/lives")
    async def lives():
        return "yes"
"""


def test_requests_to_a_service_wait_and_go_on_one_by_one(tmp_path: Path):
    with on_stage(tmp_path) as stage:
        stage.provider.script([said_back], repeat=True)
        home = stage.home
        (home.folder / "service.py").write_text(textwrap.dedent(SERVICE))
        home.environ["PLAYHEAD_CONTROL"] = "pause model=*"
        with RecordedService(home, "-m", "uvicorn", "service:app", "--port", "0") as service:
            with ThreadPoolExecutor() as pool:

                def ask(text: str):
                    return pool.submit(service.client.post, "/ask", params={"text": text})

                answers = {text: ask(text) for text in ("one", "two")}
                (process,) = until(stage.operator.connected, "the service is connected")
                waiting = stage.operator.halted(process["trace_id"], 2)
                assert service.client.get("/lives").text == '"yes"'
                traces = {
                    text: one["trace_id"] for one in waiting for text in answers if text in one["body"]
                }
                (_,) = stage.operator.halted(traces["one"])
                change = [{"path": "messages[0].content", "value": "edited"}]
                stage.operator.order(traces["one"], "edit", edits=change)
                stage.operator.order(traces["one"], "continue")
                assert answers["one"].result().json() == {"answer": "You said edited"}
                stage.operator.order(process["trace_id"], "pause")
                stage.operator.order(traces["two"], "reject", message="no")
                assert answers["two"].result().status_code == 500
                three = ask("three")
                stage.operator.halted(process["trace_id"])
                stage.operator.order(process["trace_id"], "continue")
                assert three.result().json() == {"answer": "You said three"}
        names = [run["name"] for run in home.runs() if run["status"] == "success"]
        assert len(names) == 3
        del home.environ["PLAYHEAD_CONTROL"]
        edited = next(name for name in names if home.run(name).trace_id == traces["one"])
        assert identical(home, edited)["edited"] == ["request of step 1"]
