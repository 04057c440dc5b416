"""The sections of the settings file; each key says what it is, its unit, and why its default."""
