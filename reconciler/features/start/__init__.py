"""Start: a person begins the drain of announced maintenance."""
