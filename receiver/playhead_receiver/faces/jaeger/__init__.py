"""What Jaeger asks of a store (`jaeger.storage.v2`), and what is asked of Jaeger over HTTP."""
