"""Tables of settings and of what is said about them."""

import re


def rows(table: str) -> list[tuple[str, str]]:
    """Return each file of a table with the sentence below it, whose lines begin with a bar."""
    found = re.findall(r"((?:^[^|].*\n)+)((?:^\| .*\n)+)", table, re.MULTILINE)
    return [(text, sentence[2:-1].replace("\n| ", " ")) for text, sentence in found]
