"""The site of the docs: what `mkdocs.yml` needs beside MkDocs."""
