"""Tapes that were changed or made to do harm, and what watches over their use."""
