"""Report: a plan and its outcomes as one document, and that document as text, JSON or Markdown."""
