"""Forks and resumes: where a tape is cut, what is edited, and how the process is started."""
