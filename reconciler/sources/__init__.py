"""Where announcements come from: each source is a folder or a file."""
