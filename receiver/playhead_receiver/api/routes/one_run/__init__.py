"""Routes below ``/v1/runs/RUN``, which read or annotate a run."""
