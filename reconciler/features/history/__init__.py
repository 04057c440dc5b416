"""The cases that ended, as a document and as text."""
