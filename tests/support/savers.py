"""Savers of LangGraph for its conformance suite, which calls asynchronous methods alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from playhead_checkpoint.langgraph import PlayheadSaver


class SyncSaver(PlayheadSaver):
    """The asynchronous methods that the suite calls are the synchronous ones."""

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        return self.put(config, checkpoint, metadata, new_versions)

    async def aput_writes(self, *given: Any, **named: Any) -> None:
        self.put_writes(*given, **named)

    async def aget_tuple(self, config: Any) -> Any:
        return self.get_tuple(config)

    async def alist(self, *given: Any, **named: Any) -> AsyncIterator[Any]:
        for one in self.list(*given, **named):
            yield one

    async def adelete_thread(self, thread_id: str) -> None:
        self.delete_thread(thread_id)

    async def adelete_for_runs(self, run_ids: Any) -> None:
        self.delete_for_runs(run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self.copy_thread(source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Any, *, strategy: str = "keep_latest") -> None:
        self.prune(thread_ids, strategy=strategy)


class Reversal:
    """A cipher for `EncryptedSerializer`: encrypts nothing, but leaves nothing readable either."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "reversal", plaintext[::-1]

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        return ciphertext[::-1]
