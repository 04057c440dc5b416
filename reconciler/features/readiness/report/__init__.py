"""The answer of `reconciler readiness` as one document, and that document as text or Markdown."""
