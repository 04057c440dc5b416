"""Rules about what the cluster undoes, each with the test file that fails without it."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_WRITING = "reconciler/kubernetes/node_writing.py"
_OWNER = "reconciler/kubernetes/cordon_owner.py"
_LAW = "tests/laws/test_law_24_what_is_undone_becomes_rare.py"
_LOST = "tests/real/passes/test_lost_records.py"
_REAL = "tests/real/passes/test_undone_writes.py"

_KEPT = "tests/kubernetes/test_kept_records.py"
_KEEPING = "reconciler/kubernetes/kept_records.py"

UNDONE_RULES = (
    Mutant(
        9,
        "the label of the node says which kept record counts",
        _KEEPING,
        "if sign(text) == label), None)",
        "), None)",
        _KEPT,
    ),
    Mutant(
        9,
        "the kept record that counts stays until the node names the next",
        _KEEPING,
        "else (counts, text)",
        "else (text,)",
        _KEPT,
    ),
    Mutant(
        24,
        "no record is kept for a node whose cordon is refused, too",
        _KEEPING,
        "send(_without_record(write), dry_run=True)",
        "pass",
        _KEPT,
    ),
    Mutant(
        24,
        "the record of a node that is gone makes room",
        _KEEPING,
        "if not nodes or node in nodes}",
        "}",
        _KEPT,
    ),
    Mutant(
        0,
        "a label with which a node names its kept record is never left out",
        _WRITING,
        " or keys_of(write.own_prefix).record_kept in write.labels:",
        ":",
        "tests/real/clients/test_node_writing.py",
    ),
    Mutant(
        2,
        "a node that lost its record is uncordoned only if a pass has cordoned it",
        _OWNER,
        "entry.manager == PASSES",
        "True",
        _LOST,
    ),
    Mutant(
        2,
        "what a person drains by hand has another field manager",
        "jobs/commands/drain.py",
        ", field_manager=BY_HAND",
        "",
        _LOST,
    ),
    Mutant(
        0,
        "a pass asks about a few cordons only",
        _OWNER,
        "min(AT_ONCE, len(unknown))",
        "len(unknown)",
        _LOST,
    ),
    Mutant(
        0,
        "a pass asks about the cordon of a node once",
        _OWNER,
        "if node.uid not in self._known]",
        "]",
        _LOST,
    ),
    Mutant(
        24,
        "the answer to a patch is compared with what was sent",
        _WRITING,
        "lost = not_kept(answered, write)",
        "lost = not_kept(answered, write) and frozenset[str]()",
        _REAL,
    ),
    Mutant(
        24,
        "what stayed of a patch is taken back",
        _WRITING,
        "back = taken_back(answered, write)",
        "back = taken_back(answered, write) and None",
        _REAL,
    ),
    Mutant(
        24,
        "what only shows something stops no drain",
        _WRITING,
        "if lost.isdisjoint(essential(write)):",
        "if lost.isdisjoint(changes(write)):",
        _REAL,
    ),
    Mutant(
        24,
        "each pause is longer than the last",
        "reconciler/model/undone.py",
        "FIRST_PAUSE * 2 ** min(self.times - 1, 30)",
        "FIRST_PAUSE",
        _LAW,
    ),
    Mutant(
        24,
        "a write that does not stay waits for its next try",
        "reconciler/passes/decide/one_node.py",
        "if undone is None or not waits(plan, undone, context.now):",
        "if True:",
        _LAW,
    ),
    Mutant(
        24,
        "a conflict in two passes in a row is a reason to wait",
        "reconciler/passes/act.py",
        "        except (Conflict, Forbidden, Rejected):\n",
        "        except (Forbidden, Rejected):\n",
        _LAW,
    ),
    Mutant(
        24,
        "a record that is removed again is written after longer pauses",
        "reconciler/passes/decide/writable.py",
        "if write is not None and (node.cordoned_by_us or shown) and rewritten(write):",
        "if False:",
        _LAW,
    ),
    Mutant(
        24,
        "the label with the state shows a record that was removed, too",
        "reconciler/passes/decide/writable.py",
        "(node.cordoned_by_us or shown)",
        "node.cordoned_by_us",
        _LAW,
    ),
    Mutant(
        24,
        "a cordon does not wait for a record that is removed again and again",
        "reconciler/model/own.py",
        "if again and not write.unschedulable else",
        "if again else",
        _LAW,
    ),
    Mutant(
        24,
        "a record that was removed is remembered until the case ends",
        "reconciler/passes/decide/writable.py",
        "known.lost == (REWRITTEN,) and (",
        "known.lost == () and (",
        _LAW,
    ),
    Mutant(
        24,
        "a Warning Event says that something removes the record",
        "reconciler/passes/decide/writable.py",
        "if undone.times > 1:",
        "if False:",
        _LAW,
    ),
    Mutant(
        24,
        "the hold says what undoes a write",
        "reconciler/passes/decide/writable.py",
        "HoldCode.NODE_WRITABLE",
        "HoldCode.INTERNAL",
        _LAW,
    ),
    Mutant(
        24,
        "a Warning Event says what did not stay",
        "reconciler/passes/act.py",
        "            sender.settles(Notification(node.node, write.uid, notice))\n",
        "            pass\n",
        _REAL,
    ),
    Mutant(
        24,
        "the ledger remembers what did not stay",
        "reconciler/kubernetes/ledger.py",
        'undone=_list(Undone, data.get(UNDONE), "which writes did not stay")[:MOST],',
        "",
        _REAL,
    ),
)
