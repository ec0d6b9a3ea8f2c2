"""What everything that keeps `playhead_core.claims.Claims` has to do, as a class of tests."""

from __future__ import annotations

import os
import threading
from collections import Counter

from playhead_core.claims import Claims


class ClaimsConformance:
    """``open_claims`` opens those of the same place; ``lineage`` is one that nothing has claimed in."""

    lineage: str = "run"

    def open_claims(self) -> Claims:
        """Open them, as another process does."""
        raise NotImplementedError

    def test_an_effect_is_done_once_and_its_result_is_given(self) -> None:
        first, second = self.open_claims(), self.open_claims()
        ours = first.claim(self.lineage, "key", "refund")
        assert ours.state == "ours"
        first.done(ours.attempt, b'"receipt"')
        given = second.claim(self.lineage, "key", "refund")
        assert (given.state, given.attempt, given.result) == ("done", ours.attempt, b'"receipt"')
        assert second.claim(self.lineage, "other", "refund").state == "ours"
        assert second.claim(f"another {self.lineage}", "key", "refund").state == "ours"

    def test_a_result_that_cannot_be_kept_is_none(self) -> None:
        opened = self.open_claims()
        opened.done(opened.claim(self.lineage, "key", "refund").attempt, None)
        given = opened.claim(self.lineage, "key", "refund")
        assert (given.state, given.result) == ("done", None)

    def test_a_claim_says_for_what_it_was_made(self) -> None:
        opened = self.open_claims()
        opened.claim(self.lineage, "key", "refund")
        assert opened.claim(self.lineage, "key", "mail").name == "refund"

    def test_while_an_attempt_goes_on_others_wait(self) -> None:
        first, second = self.open_claims(), self.open_claims()
        ours = first.claim(self.lineage, "key", "refund")
        for opened in (first, second):
            busy = opened.claim(self.lineage, "key", "refund")
            assert (busy.state, busy.attempt) == ("busy", ours.attempt)
            assert opened.claim(self.lineage, "key", "refund", ours.attempt).state == "busy"

    def test_an_error_leaves_the_outcome_unknown_and_what_was_not_done_is_free(self) -> None:
        opened = self.open_claims()
        opened.failed(opened.claim(self.lineage, "key", "refund").attempt, "ReadTimeout: 30 s")
        unknown = opened.claim(self.lineage, "key", "refund")
        assert (unknown.state, unknown.error) == ("unknown", "ReadTimeout: 30 s")
        assert opened.claim(self.lineage, "key", "refund", os.urandom(16)).state == "unknown"
        again = opened.claim(self.lineage, "key", "refund", unknown.attempt)
        assert again.state == "ours"
        # Another caller has taken over the same unknown attempt first.
        assert opened.claim(self.lineage, "key", "refund", unknown.attempt).state == "busy"
        opened.give_back(again.attempt)
        assert opened.claim(self.lineage, "key", "refund").state == "ours"

    def test_of_many_at_once_one_does_it(self) -> None:
        got: list[str] = []
        together = threading.Barrier(8)

        def ask(opened: Claims) -> None:
            together.wait()
            for number in range(20):
                got.append(opened.claim(self.lineage, str(number), "refund").state)

        # Two openings in one process, as of two processes.
        shared = self.open_claims(), self.open_claims()
        threads = [threading.Thread(target=ask, args=(shared[one % 2],)) for one in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert Counter(got) == {"ours": 20, "busy": 140}

    def test_the_child_of_a_fork_is_a_process_of_its_own(self) -> None:
        opened = self.open_claims()
        opened.claim(self.lineage, "parent's", "refund")
        pid = os.fork()
        if pid == 0:
            try:
                busy = opened.claim(self.lineage, "parent's", "refund").state == "busy"
                ours = opened.claim(self.lineage, "child's", "refund").state == "ours"
                os._exit(0 if busy and ours else 1)
            except BaseException:
                os._exit(2)
        assert os.waitpid(pid, 0)[1] == 0
        assert opened.claim(self.lineage, "child's", "refund").state in ("busy", "unknown")
        assert opened.claim(self.lineage, "parent's", "refund").state == "busy"
