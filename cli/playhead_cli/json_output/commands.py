"""The types that each command prints with ``--json``."""

from __future__ import annotations

from typing import Any

from playhead_analysis.agents.graph import AgentGraph
from playhead_analysis.comparison.versions import GroupComparison
from playhead_analysis.diagrams.of_run import RunDiagram
from playhead_analysis.failure_kinds import FailureKinds
from playhead_analysis.flows.flow import Flow
from playhead_analysis.likeness import LikeRuns
from playhead_analysis.summaries.summary import PathSummary
from playhead_analysis.workflows.conformance import ConformanceReport
from playhead_cli.json_output import (
    analysis,
    changes,
    controlled,
    environment,
    files,
    moments,
    runs,
    shown,
)
from playhead_replay.derived.attribution import Attribution
from playhead_replay.derived.blame import Blame
from playhead_replay.json_objects.comparisons import Diff

OF_COMMANDS: dict[str, tuple[Any, ...]] = {
    "demo": (environment.PrintedDemo,),
    "up": (environment.PrintedReceiver,),
    "record": (runs.PrintedRecording,),
    "open": (environment.PrintedLink,),
    "ls": (runs.PrintedRuns,),
    "show": (
        shown.PrintedWholeRun,
        shown.PrintedWholeStep,
        shown.PrintedOneToolCall,
        shown.PrintedCustody,
        *(moments.PrintedRunMoment, moments.PrintedFact, moments.PrintedCheckpoints),
        *(files.PrintedWorkspace, files.PrintedArtifacts),
    ),
    "search": (runs.PrintedHit, runs.PrintedIndex),
    "stats": (runs.PrintedStats,),
    "tail": (runs.PrintedMoment,),
    "fork": (runs.PrintedBranch,),
    "rollback": (runs.PrintedBranch,),
    "pause": (controlled.PrintedControl,),
    "step": (controlled.PrintedControl,),
    "continue": (controlled.PrintedControl,),
    "checkpoint": (controlled.PrintedMadeCheckpoint,),
    "edit": (controlled.PrintedControl,),
    "reject": (controlled.PrintedControl,),
    "answer": (controlled.PrintedControl,),
    "resume": (runs.PrintedBranch,),
    "replay": (runs.PrintedReport, runs.PrintedSemanticReport),
    "export": (changes.PrintedExport,),
    "import": (changes.PrintedImport,),
    "checkpoints": (moments.PrintedCheckpoints, moments.PrintedRestored),
    "events": (moments.PrintedFact,),
    "logs": (shown.PrintedLog,),
    "note": (changes.PrintedNotes,),
    "state": (moments.PrintedRunMoment,),
    "diff": (Diff, moments.PrintedMomentChanges),
    "variability": (runs.PrintedVariability,),
    "flow": (Flow,),
    "conform": (ConformanceReport,),
    "workflow discover": (analysis.PrintedWorkflow,),
    "experience make": (analysis.PrintedExperience,),
    "summary": (PathSummary,),
    "diagram": (RunDiagram,),
    "agents": (AgentGraph,),
    "compare": (GroupComparison,),
    "failures": (FailureKinds,),
    "like": (LikeRuns,),
    "sql": (runs.PrintedRows,),
    "blame": (Blame,),
    "time": (Attribution,),
    "artifacts": (files.PrintedArtifacts, files.PrintedTakenArtifact),
    "workspace": (files.PrintedWorkspace, files.PrintedWorkspaceDiff),
    "golden add": (changes.PrintedGolden,),
    "golden ls": (changes.PrintedGoldens,),
    "golden rm": (changes.PrintedRemoval,),
    "golden update": (changes.PrintedUpdate,),
    "doctor": (environment.PrintedDiagnosis, environment.PrintedSettings),
    "verify": (shown.PrintedVerification, shown.PrintedFileCustody),
    "delete": (changes.PrintedDeletion, changes.PrintedPreview),
    "rederive": (changes.PrintedRederivation,),
    "redact": (changes.PrintedRedaction,),
    "gc": (changes.PrintedDeletion, changes.PrintedPreview, changes.PrintedMark),
    "backup": (changes.PrintedBackup,),
    "restore": (changes.PrintedRestoration,),
    "token create": (environment.PrintedNewToken,),
    "token list": (environment.PrintedTokens,),
    "token revoke": (environment.PrintedTokens,),
    "spool ls": (environment.PrintedSpool,),
    "spool push": (environment.PrintedPush,),
    "completion": (environment.PrintedCompletion,),
}
"""The types of what each command prints. ``mcp`` speaks MCP, and ``browse`` needs a terminal."""

OF_FAILURES = runs.PrintedFailure
"""The type that every command prints on stderr if it fails."""
