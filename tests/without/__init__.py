"""Deletes each feature and each source in turn from a copy of the project, and checks what is left."""
