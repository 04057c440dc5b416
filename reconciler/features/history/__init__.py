"""The cases that ended, as a document and as text."""

COMMANDS = {"history": "Sum up the cases that have ended, from files of --history or from logs of serve."}
