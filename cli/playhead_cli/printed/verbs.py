"""Which verb prints what with ``--json``."""

from __future__ import annotations

from typing import Any

from playhead_cli.printed import changes, controlled, files, moments, runs, shown, surroundings

OF_VERBS: dict[str, tuple[Any, ...]] = {
    "demo": (surroundings.PrintedDemo,),
    "up": (surroundings.PrintedReceiver,),
    "record": (runs.PrintedRecording,),
    "open": (surroundings.PrintedLink,),
    "ls": (runs.PrintedRuns,),
    "show": (shown.PrintedWholeRun, shown.PrintedWholeStep, shown.PrintedCustody),
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
    "replay": (runs.PrintedReport,),
    "export": (changes.PrintedExport,),
    "import": (changes.PrintedImport,),
    "checkpoints": (moments.PrintedCheckpoints, moments.PrintedRestored),
    "events": (moments.PrintedFact,),
    "state": (moments.PrintedRunMoment,),
    "diff": (shown.PrintedDiff, moments.PrintedMomentChanges),
    "variability": (runs.PrintedVariability,),
    "artifacts": (files.PrintedArtifacts, files.PrintedTakenArtifact),
    "workspace": (files.PrintedWorkspace, files.PrintedWorkspaceDiff),
    "golden add": (changes.PrintedGolden,),
    "golden ls": (changes.PrintedGoldens,),
    "golden rm": (changes.PrintedRemoval,),
    "golden update": (changes.PrintedUpdate,),
    "doctor": (surroundings.PrintedDiagnosis, surroundings.PrintedSettings),
    "verify": (shown.PrintedVerification, shown.PrintedFileCustody),
    "delete": (changes.PrintedDeletion, changes.PrintedPreview),
    "rederive": (changes.PrintedRederivation,),
    "redact": (changes.PrintedRedaction,),
    "gc": (changes.PrintedDeletion, changes.PrintedPreview, changes.PrintedMark),
    "backup": (changes.PrintedBackup,),
    "restore": (changes.PrintedRestoration,),
    "token create": (surroundings.PrintedNewToken,),
    "token list": (surroundings.PrintedTokens,),
    "token revoke": (surroundings.PrintedTokens,),
    "spool ls": (surroundings.PrintedSpool,),
    "spool push": (surroundings.PrintedPush,),
    "completion": (surroundings.PrintedCompletion,),
}
"""The types of what each verb prints; of several, each object has one. ``mcp`` speaks MCP, ``browse``
wants a terminal.
"""

OF_FAILURES = runs.PrintedFailure
"""What every verb prints on stderr when it fails."""
