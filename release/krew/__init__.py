"""The plugin of kubectl as krew installs it: archives with all libraries, and their manifest."""
