"""Tiny agents over real SDKs, each with a fault or without one."""
