"""The stages of a pass: observe, assess, decide, act."""
