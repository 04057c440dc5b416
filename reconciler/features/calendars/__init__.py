"""Calendars of others: iCalendar files, lists of freezes, and the windows of AKS."""
