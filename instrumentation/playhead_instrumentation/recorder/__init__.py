"""The driver: who answers an exchange (source), when (gate), and where its facts go (sink)."""
