"""The state machine of profiles, its checks and triggers, and how the settings judge an event."""
