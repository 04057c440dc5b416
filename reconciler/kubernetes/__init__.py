"""The Kubernetes API: connection, reads, writes, watches, evictions, the lock."""
