"""Workflows: profiles of users, in maintenance-controller's form, beside the profile of platform events.

Importing the package registers every check and trigger type.
"""
