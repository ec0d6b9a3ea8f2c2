"""Hook of pydantic-ai: switches on its own OpenTelemetry spans of agents and tools.

They are the default of the framework. So a program that instruments its agents, or that switches
instrumentation off, keeps what it chose, before or after this hook.
"""

from __future__ import annotations

from types import ModuleType
from typing import Final

from opentelemetry.metrics import NoOpMeterProvider

from playhead_instrumentation.libraries.frameworks.own_tracer import FrameworkTracers
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.session.session import current

NAME: Final = "pydantic-ai"


def hook(_: ModuleType) -> None:
    """Install the hook: `pydantic_ai` has been imported."""
    PATCHES.when_imported("pydantic_ai.agent", NAME, _switch_on)


def _switch_on(module: ModuleType) -> None:
    agent, session = required(module, "Agent"), current()
    if session is None or getattr(agent, "_instrument_default", False) is not False:
        return
    settings = required(module, "InstrumentationSettings")(
        tracer_provider=FrameworkTracers(NAME),
        meter_provider=NoOpMeterProvider(),  # the tokens of calls are counted once
        include_content=session.redactor.content,
    )
    agent.instrument_all(settings)
    PATCHES.also(lambda: agent.instrument_all(False) if agent._instrument_default is settings else None)
