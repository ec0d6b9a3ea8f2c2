"""Commands that record: `record`, `up`, `demo`, `doctor`."""
