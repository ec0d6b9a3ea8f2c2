"""``/v1/runs/{run}/control``, and the orders that an operator gives a running agent."""

from __future__ import annotations

import json
from typing import Annotated

import anyio
import anyio.to_thread
import msgspec
from fastapi import APIRouter, Depends, Query

from playhead_core.control.messages import ControlOrder, Halted, HandAnswer
from playhead_core.control.rules import read_rules
from playhead_core.errors import RunUnknown
from playhead_core.rerun.edits import between
from playhead_core.rerun.plans import Edit
from playhead_receiver.api.asked import ApiRequest, Controlling, Reading, RunName
from playhead_receiver.api.models.control import (
    AnswerOrder,
    AnyOrder,
    Breakpoints,
    CheckpointOrder,
    ConnectedProcess,
    ContinueOrder,
    ControlledProcess,
    ControlState,
    EditOrder,
    HaltedItem,
    LeasedOrder,
    LeaseItem,
    Limits,
    MadeCheckpoint,
    PauseOrder,
    Processes,
    RejectOrder,
    RenewOrder,
    StepOrder,
)
from playhead_receiver.control.hub import Controlled, Hub, HubWatch, NotDone, RunOver
from playhead_replay import Run
from playhead_replay.timeline import checkpoints_of

router = APIRouter(tags=["control"])

DELIVERED_S = 0.1
"""How often it is looked whether something was delivered."""

NOBODY = "an operator"
"""Who asks, where nobody says it and no token is needed."""


class ControlledRun:
    """The run that is controlled."""

    def __init__(self, asked: ApiRequest, name: str) -> None:
        self.hub: Hub = asked.house.hub
        self._asked = asked
        self._is_over = False
        try:
            summary = asked.run(name)
            self.trace_id, self.instances = summary.trace_id, summary.instances
            # A process that is silent for long counts as interrupted, and may be heard of again.
            self._is_over = summary.status not in ("running", "interrupted")
        except RunUnknown:
            # What waits is heard of here before the store has the run.
            if not self.hub.controlled(name, ()).processes:
                raise
            self.trace_id, self.instances = name, list[str]()

    def by(self, said: str) -> str:
        """Who asks."""
        named = [word for word in (said, self._asked.caller.name) if word]
        return " via ".join(named) or NOBODY

    def controlled(self) -> Controlled:
        """The control of the run, as of now."""
        return self.hub.controlled(self.trace_id, self.instances)

    def halt(self, word: str) -> tuple[str, int]:
        """Find a pending request by id or number: its process and number. Raises `NotDone`."""
        if not word:
            return "", 0
        found = [(at, one.number) for at, one in self.controlled().halted if word in _words(at, one)]
        if len(found) != 1:
            what = "nothing waits" if not found else f"{len(found)} wait"
            raise NotDone(f"{what} under {word!r}", hint="GET /v1/runs/RUN/control")
        return found[0]

    def edits_to(self, word: str, wanted: str) -> list[Edit]:
        """Edits that turn what waits, without its credentials, into another document. `NotDone`."""
        found = self.controlled().halted
        if word:
            instance, number = self.halt(word)
            found = [(at, one) for at, one in found if (at, one.number) == (instance, number)]
        if len(found) != 1:
            raise NotDone(f"{len(found)} wait", hint="say which: GET /v1/runs/RUN/control")
        try:
            return between(json.loads(found[0][1].body or ""), json.loads(wanted))
        except (ValueError, RecursionError) as problem:
            raise NotDone("it is no JSON", cause=str(problem)) from None

    def state(self, *, taken: bool = True) -> ControlState:
        """What the API says of it."""
        found = self.controlled()
        lease = None if found.lease is None else LeaseItem.model_validate(found.lease)
        return ControlState(
            trace_id=self.trace_id,
            revision=found.revision,
            processes=[ConnectedProcess.model_validate(one) for one in found.processes],
            lease=lease,
            halted=[_item(*one) for one in found.halted],
            taken=taken,
        )

    def send(self, order: ControlOrder, halt: str = "") -> int:
        """Send an order; returns its number. `NotControlled`, `HeldByOther`, `NotDone`, `TooMany`."""
        if self._is_over:
            raise RunOver("this run has ended", hint="playhead fork RUN:POINT, to continue from there")
        instance, number = self.halt(halt)
        order = msgspec.structs.replace(order, halt=number)
        return self.hub.give(order, self.instances, instance)

    async def checkpoint(self, said: CheckpointOrder) -> MadeCheckpoint:
        """Have a checkpoint made, and wait until it is stored. As `send`."""
        given, found, name = self.send(self.order("checkpoint", said, said=said.label)), None, None
        with HubWatch(self.hub) as waiting, anyio.move_on_after(said.wait_s):
            while not self.hub.closed:
                waiting.looks()
                self.hub.taken(given, self.trace_id, self.instances)  # it may say why it cannot
                found = self.hub.made(given)
                if found is not None:
                    break
                if not self.controlled().processes:
                    raise RunOver("the run has ended before its next step")
                await waiting.changed()
            if found is not None and found[1] < 0:
                raise NotDone("nothing is recorded where the program is: no checkpoint was made")
            while found is not None and name is None and not self.hub.closed:
                name = await anyio.to_thread.run_sync(self._name_of, *found)
                if name is None:
                    await anyio.sleep(DELIVERED_S)
        return MadeCheckpoint(trace_id=self.trace_id, name=name, made=found is not None)

    def _name_of(self, instance: str, seq: int) -> str | None:
        """The name of the checkpoint with this fact; None: it is not stored yet."""
        store, process = self._asked.store, bytes.fromhex(instance)
        if store.tape(process).last() < seq:
            return None
        for one in checkpoints_of(Run.load(store, self.trace_id)):
            if one.seq == seq and one.tape.instance == process:
                return one.name
        return None

    async def give(self, said: AnyOrder, order: ControlOrder, halt: str = "") -> ControlState:
        """Send an order, and wait until the agent has taken it. As `send`."""
        given = self.send(order, halt)
        taken = False
        with HubWatch(self.hub) as waiting, anyio.move_on_after(said.wait_s):
            while not taken:
                waiting.looks()
                taken = self.hub.taken(given, self.trace_id, self.instances)
                if not taken:
                    if self.hub.closed:
                        break
                    await waiting.changed()
        return self.state(taken=taken)

    def order(self, what: object, asked: AnyOrder, **more: object) -> ControlOrder:
        """An order of who asks."""
        fields = {"number": 0, "what": what, "trace_id": self.trace_id, "by": self.by(asked.by), **more}
        return msgspec.convert(fields, ControlOrder)


def _target(asked: Controlling, run: RunName) -> ControlledRun:
    target = ControlledRun(asked, run)
    asked.note("control", target.trace_id)
    return target


def _shown(asked: Reading, run: RunName) -> ControlledRun:
    target = ControlledRun(asked, run)
    asked.note("read", target.trace_id)
    return target


Ordered = Annotated[ControlledRun, Depends(_target)]
Shown = Annotated[ControlledRun, Depends(_shown)]


@router.get("/v1/control")
def list_processes(asked: Reading) -> Processes:
    """List processes connected for live control."""
    asked.note("read", "control")
    found = asked.house.hub.connected()
    return Processes(
        processes=[
            ControlledProcess(
                instance=one.instance,
                pid=one.pid,
                agent=one.agent,
                trace_id=one.trace_id,
                halted=len(one.halted),
                holder=None if lease is None else lease.holder,
            )
            for one, lease in found
        ]
    )


@router.get("/v1/runs/{run}/control")
async def show_control(
    target: Shown,
    after: Annotated[
        int | None, Query(ge=0, le=(1 << 63) - 1, description="Wait until `revision` differs from this.")
    ] = None,
    wait_s: Annotated[float, Query(ge=0, le=9, description="Maximum wait, in seconds.")] = 5.0,
) -> ControlState:
    """Get who controls a run, and its pending requests."""
    if after is not None:
        with HubWatch(target.hub) as waiting, anyio.move_on_after(wait_s):
            waiting.looks()
            while target.hub.revision == after and not target.hub.closed:
                await waiting.changed()
                waiting.looks()
    return target.state()


@router.post("/v1/runs/{run}/pause")
async def pause_run(target: Ordered, said: PauseOrder) -> ControlState:
    """Pause a run before its next request. Responses in flight are held back, except over gRPC."""
    return await target.give(said, target.order("pause", said, lease_s=said.lease_s))


@router.post("/v1/runs/{run}/step")
async def step_run(target: Ordered, said: StepOrder) -> ControlState:
    """Release one pending request, the oldest by default. The run stays paused."""
    return await target.give(said, target.order("step", said, lease_s=said.lease_s), said.halt)


@router.post("/v1/runs/{run}/continue")
async def continue_run(target: Ordered, said: ContinueOrder) -> ControlState:
    """Continue a paused run, or release one pending request."""
    return await target.give(said, target.order("continue", said), said.halt)


@router.post("/v1/runs/{run}/checkpoint")
async def order_checkpoint(target: Ordered, said: CheckpointOrder) -> MadeCheckpoint:
    """Take a checkpoint at the next step without pausing the run, even if someone else controls it."""
    return await target.checkpoint(said)


@router.post("/v1/runs/{run}/edit")
async def edit_request(target: Ordered, said: EditOrder) -> ControlState:
    """Edit a pending request, tool arguments, or a registered state. It stays pending."""
    edits = [Edit(one.path, one.value, one.remove, one.add) for one in said.edits]
    if said.body is not None:
        edits += target.edits_to(said.halt, said.body)
    if not edits:
        raise NotDone("nothing is edited")
    return await target.give(said, target.order("edit", said, edits=edits, state=said.state), said.halt)


@router.post("/v1/runs/{run}/reject")
async def reject_request(target: Ordered, said: RejectOrder) -> ControlState:
    """Reject a pending request: it is not sent, and the program gets an error."""
    return await target.give(said, target.order("reject", said, said=said.message), said.halt)


@router.post("/v1/runs/{run}/answer")
async def answer_request(target: Ordered, said: AnswerOrder) -> ControlState:
    """Answer a pending request by hand: it is not sent."""
    answer = HandAnswer(said.body, said.status)
    return await target.give(said, target.order("answer", said, answer=answer), said.halt)


@router.post("/v1/runs/{run}/breakpoints")
async def set_breakpoints(target: Ordered, said: Breakpoints) -> ControlState:
    """Set the breakpoints of a run. The agent evaluates them."""
    return await target.give(said, _rules(target, said, "pause", said.on))


@router.post("/v1/runs/{run}/limits")
async def set_limits(target: Ordered, said: Limits) -> ControlState:
    """Set the limits of a run. The agent evaluates them."""
    return await target.give(said, _rules(target, said, "stop", said.stop))


@router.post("/v1/runs/{run}/lease")
async def renew_lease(target: Ordered, said: RenewOrder) -> ControlState:
    """Renew the lease on a run."""
    return await target.give(said, target.order("renew", said, lease_s=said.lease_s))


def _rules(target: ControlledRun, said: LeasedOrder, action: str, texts: list[str]) -> ControlOrder:
    """Rules of one action in place of those before; the rules of the other action stay."""
    given = [str(rule) for rule in read_rules(f"{action} {text}" for text in texts)]
    lease = target.controlled().lease
    kept = [] if lease is None else [rule for rule in lease.rules if not rule.startswith(f"{action} ")]
    return target.order("rules", said, rules=[*kept, *given], lease_s=said.lease_s)


def _id(instance: str, halt: Halted) -> str:
    return f"{instance[:8]}-{halt.number}"


def _words(instance: str, halt: Halted) -> tuple[str, str]:
    return _id(instance, halt), str(halt.number)


def _item(instance: str, halt: Halted) -> HaltedItem:
    return HaltedItem(
        id=_id(instance, halt),
        kind=halt.kind,
        key=halt.key,
        trace_id=halt.trace_id,
        exchange=halt.exchange,
        reason=halt.reason,
        since_ns=halt.since_ns,
        size_bytes=halt.size_bytes,
        body=halt.body,
    )
