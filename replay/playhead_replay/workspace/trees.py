"""Trees of files, as readers of a run get them: see `playhead_checkpoint.workspace.tree`."""

from __future__ import annotations

from playhead_checkpoint.workspace.tree import Laid as Laid
from playhead_checkpoint.workspace.tree import Tree as Tree
from playhead_checkpoint.workspace.tree import TreeChange as TreeChange
from playhead_checkpoint.workspace.tree import TreeItem as TreeItem
from playhead_checkpoint.workspace.tree import lay as lay
from playhead_checkpoint.workspace.tree import tree_difference as tree_difference
