"""TraceQL: its grammar, and what a query means over a trace."""

from playhead_receiver.api.tempo.traceql.matching import Matcher, Spanset
from playhead_receiver.api.tempo.traceql.parsing import parse, parse_metric
from playhead_receiver.api.tempo.traceql.tree import Calculation, Field, Metric, SpanQuery

__all__ = ["Calculation", "Field", "Matcher", "Metric", "SpanQuery", "Spanset", "parse", "parse_metric"]
