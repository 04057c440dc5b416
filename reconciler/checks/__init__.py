"""Checks: one small file each; a check answers passed, failed or unknown, and says why."""
