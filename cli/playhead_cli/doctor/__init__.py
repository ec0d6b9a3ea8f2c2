"""The checks of ``playhead doctor``: one function per subject, and analysis of a program's source."""
