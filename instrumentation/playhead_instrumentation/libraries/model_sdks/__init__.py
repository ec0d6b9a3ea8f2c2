"""Patches of model SDKs, one file each: where a logical call begins and returns."""
