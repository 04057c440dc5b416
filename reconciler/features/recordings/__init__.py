"""Records what a node said as a case that can be sent to the project, and replays such a case."""

from reconciler.plugins import SEE, Command

COMMANDS = {
    "record": Command(
        SEE, "Write what a node says to a file without names that can be sent.", "record NODE --out FILE"
    ),
    "replay": Command(SEE, "Print what is decided about a recorded node, and what differs.", "replay FILE"),
}
