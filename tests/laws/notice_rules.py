"""Rules of notices, each with the test file that fails without it."""

from __future__ import annotations

from tests.laws.mutant import Mutant

_QUEUE = "reconciler/notifiers/queue.py"
_QUEUE_TEST = "tests/notifiers/test_queue.py"
_DERIVING = "reconciler/notices/deriving.py"
_DERIVING_TEST = "tests/notices/test_deriving.py"
_DELIVERIES = "reconciler/notices/deliveries.py"
_DELIVERIES_TEST = "tests/notices/test_deliveries.py"
_HTTP = "reconciler/notifiers/transports/http.py"
_HTTP_TEST = "tests/notifiers/test_transports.py"
_TIMES = "reconciler/calendar/notice_times.py"
_TIMES_TEST = "tests/calendar/test_notice_times.py"

NOTICE_RULES = (
    Mutant(
        9,
        "what is sent is remembered before it is sent",
        _QUEUE,
        "        return known is not self._saved and",
        "        return not known.pending and known is not self._saved and",
        _QUEUE_TEST,
    ),
    Mutant(
        9,
        "the end of a case that no pass of this process saw is sent",
        _DERIVING,
        "        if known.open:\n",
        "        if False:\n",
        _DERIVING_TEST,
    ),
    Mutant(
        8,
        "a pass without news does not change the memory",
        _DERIVING,
        "        return self._before if after == self._before else after",
        "        return after",
        _DERIVING_TEST,
    ),
    Mutant(
        0,
        "an entry with a delay gets nothing about an ended case while another one fails",
        _DERIVING,
        "            names -= {entry.name for entry in self._entries if entry.after}",
        "            names -= set()",
        _DERIVING_TEST,
    ),
    Mutant(
        0,
        "no reminder is sent before the first message",
        _DERIVING,
        "self.since + entry.delay(self.message.topic).total_seconds() <= now.timestamp()",
        "self.since <= now.timestamp()",
        _DERIVING_TEST,
    ),
    Mutant(
        0,
        "a node that waits for its time is not reported as held by the budget",
        "reconciler/notices/facts.py",
        "    matters = {WaitsFor.OTHER} if early else ",
        "    matters = ",
        _DERIVING_TEST,
    ),
    Mutant(
        17,
        "a receiver that hangs delays no other",
        _QUEUE,
        '            threading.Thread(target=thread, name=f"notices-{name}", daemon=True).start()',
        "            thread()",
        _QUEUE_TEST,
    ),
    Mutant(
        17,
        "the end of a process waits a bounded time",
        _QUEUE,
        "            self._thread.join(patience)",
        "            self._thread.join()",
        _QUEUE_TEST,
    ),
    Mutant(
        0,
        "nothing is sent without the lock",
        _QUEUE,
        "            self._around.guard()\n",
        "",
        _QUEUE_TEST,
    ),
    Mutant(
        0,
        "a failure is reported once",
        _QUEUE,
        "        is_new = not self._memory.receiver(name).problem",
        "        is_new = True",
        _QUEUE_TEST,
    ),
    Mutant(
        0,
        "what could not be written is not said to be done",
        "reconciler/notices/facts.py",
        "    if not any(one.notable for one in outcomes):\n",
        "    if True:\n",
        _DERIVING_TEST,
    ),
    Mutant(
        0,
        "a hold that ends before its time is not sent",
        _DERIVING,
        "        if (message.case, message.key) in self._over:\n            return None\n",
        "",
        _DERIVING_TEST,
    ),
    Mutant(
        0,
        "no error shows what a server repeats of a request",
        _HTTP,
        "*post.hidden())",
        ")",
        _HTTP_TEST,
    ),
    Mutant(
        0,
        "no redirect is followed",
        _HTTP,
        "                    retries=False,\n                    redirect=False,\n",
        "",
        _HTTP_TEST,
    ),
    Mutant(
        0,
        "nothing is sent to the metadata service",
        _HTTP,
        "            check_url(post.url)\n",
        "            pass\n",
        _HTTP_TEST,
    ),
    Mutant(
        0,
        "a day of one month is not the same day of another",
        _TIMES,
        "    return one.astimezone(zone).date() == other.astimezone(zone).date()",
        "    return one.astimezone(zone).day == other.astimezone(zone).day",
        _TIMES_TEST,
    ),
    Mutant(
        0,
        "a message that could not be sent for a day is left out and counted",
        _DELIVERIES,
        "replace(receiver, dropped=receiver.dropped + len(old))",
        "receiver",
        _DELIVERIES_TEST,
    ),
    Mutant(
        0,
        "a mail server gets no password without the encryption that the settings ask for",
        "reconciler/notifiers/transports/mail.py",
        "        if settings.tls is Tls.START_TLS:\n",
        "        if False:\n",
        "tests/notifiers/test_mail.py",
    ),
    Mutant(
        9,
        "a restarted process finds a silence again",
        "reconciler/notices/silences.py",
        "        if before is None or before.matchers != matchers:",
        "        if True:",
        "tests/notices/test_silences.py",
    ),
    Mutant(
        0,
        "a silence that is not ours stays",
        "reconciler/notices/silences.py",
        "        if uid in wanted.ours and uid",
        "        if uid",
        "tests/notices/test_silences.py",
    ),
    Mutant(
        5,
        "the silence of a node that can't be judged stays",
        "reconciler/notices/silences.py",
        " and uid not in wanted.unknown and",
        " and",
        "tests/notices/test_silences.py",
    ),
    Mutant(
        0,
        "the silence of a deleted node is ended by a later try",
        _QUEUE,
        "{*known.cases, *left}",
        "{*known.cases}",
        _QUEUE_TEST,
    ),
    Mutant(
        0,
        "a silence names its node",
        "reconciler/settings/sections/notify.py",
        "        if not any(NODE in one.value and one.is_equal for one in self.matchers):",
        "        if False:",
        "tests/settings/test_notify.py",
    ),
    Mutant(
        0,
        "a template makes a bounded text",
        "reconciler/settings/templates.py",
        "            if size > LARGEST:",
        "            if False:",
        "tests/settings/test_templates.py",
    ),
    Mutant(
        18,
        "who may change a namespace sends no mail to other domains",
        "reconciler/notices/owners.py",
        "            if is_address(address) and domain in {one.casefold() for one in to.domains}:",
        "            if is_address(address):",
        "tests/notices/test_owners.py",
    ),
    Mutant(
        18,
        "an owner that can't be reached delays nobody else",
        _QUEUE,
        "            except NotSent as error:\n                # An address",
        "            except ZeroDivisionError as error:\n                # An address",
        _QUEUE_TEST,
    ),
)
