"""The settings file: its schema, its policies, and what is said of mistakes."""
