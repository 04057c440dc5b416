"""What can be left out: each feature is a folder."""
