"""Starts playhead, agents and programs in processes of their own, or in this one."""
