"""What the objects of the query API have in common. Times are ns since the epoch, ids hexadecimal."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Status = Literal["running", "success", "failure", "partial", "interrupted"]
TraceId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
SpanId = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]


class Model(BaseModel):
    """Read off objects of ours by name."""

    model_config = ConfigDict(from_attributes=True)
