"""NVSentinel's protocols, and some of our own, against `serve` as a whole process."""
