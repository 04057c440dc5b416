"""Records what a node said as a case that can be sent to the project, and replays such a case."""

COMMANDS = {
    "record": "Write what a node says, and the decision about it, to a file without names that can be sent.",
    "replay": "Print what this program decides about a recorded node, and whether that differs.",
}
