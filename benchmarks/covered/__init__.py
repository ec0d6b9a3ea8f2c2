"""What each instrumentation's spans hold of the same calls: cases, tracers, and the judgement."""
