"""The letters of any text, for Hypothesis."""

from hypothesis import strategies as st

LETTERS = st.characters(exclude_categories=["Cs"])
"""What UTF-8 can say: the letters of `st.text()`, which tries a million of them in each fresh clone."""
