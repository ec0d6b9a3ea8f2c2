"""TraceQL: its grammar, and what a query means over a trace."""

from playhead_receiver.faces.tempo.traceql.matching import Matcher, Spanset
from playhead_receiver.faces.tempo.traceql.parsing import parse
from playhead_receiver.faces.tempo.traceql.tree import Field, Metric, Query

__all__ = ["Field", "Matcher", "Metric", "Query", "Spanset", "parse"]
