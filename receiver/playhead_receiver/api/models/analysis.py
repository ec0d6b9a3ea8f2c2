"""Bodies and answers of the routes about many runs."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from playhead_analysis.workflows.definition import MOST_BYTES
from playhead_receiver.api.models.model import Model


class WantedWorkflow(BaseModel):
    """A workflow that runs are compared with: one of the two."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=100, description="A shipped one: `GET /v1/workflows`.")] = ""
    file: Annotated[str, Field(max_length=MOST_BYTES, description="Text of a workflow file, TOML.")] = ""


class ShippedWorkflow(Model):
    """A workflow that playhead ships."""

    name: str
    description: str
    file: str
    """Text of the file, TOML."""


class ShippedWorkflows(Model):
    """The workflows that playhead ships."""

    workflows: list[ShippedWorkflow]
