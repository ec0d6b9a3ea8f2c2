"""A program that asks models through SDKs: an adapter for each, the same cases for all."""
