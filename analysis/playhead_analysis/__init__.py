"""What many runs mean: pure functions over the paths that runs took."""

from playhead_analysis.paths import PathStep, RunPath, StepKind, path_of, read_path

__all__ = ["PathStep", "RunPath", "StepKind", "path_of", "read_path"]
