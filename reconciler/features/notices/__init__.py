"""Notices: which messages a plan has, who gets them, and when.

Everything here is a function of the plan, the settings, the memory of what was sent, and `now`.
reconciler/notifiers/ sends what is due.
"""
