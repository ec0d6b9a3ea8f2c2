"""Base of the objects of the query API. Times are ns since the epoch, ids hexadecimal."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Status = Literal["running", "success", "failure", "partial", "interrupted"]
TraceId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
SpanId = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]


class Model(BaseModel):
    """Base class; its fields are read from attributes of our objects."""

    model_config = ConfigDict(from_attributes=True)
