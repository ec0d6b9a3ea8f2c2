"""What verbs share that change a store: deleting, bringing in, the note in the audit log."""
