"""``/v1/runs/{run}/control``, and orders of an operator to a running agent."""

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
from playhead_receiver.api.context import Controlling, Reading, RequestContext, RunName
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
from playhead_replay.timeline import checkpoints_of

router = APIRouter(tags=["control"])

DELIVERED_S = 0.1
"""Seconds between two looks whether a checkpoint is stored."""

NOBODY = "an operator"
"""Name of a caller that gives none, if no token is needed."""


class ControlledRun:
    """A run under control, and its orders."""

    def __init__(self, context: RequestContext, name: str) -> None:
        self.hub: Hub = context.services.hub
        self._context = context
        self._is_over = False
        try:
            summary = context.run(name)
            self.trace_id, self.instances = summary.trace_id, summary.instances
            # A process that is silent for long counts as interrupted, but may report again.
            self._is_over = summary.status not in ("running", "interrupted")
        except RunUnknown:
            # Pending requests are reported before the store has the run.
            if not self.hub.controlled(name, ()).processes:
                raise
            self.trace_id, self.instances = name, list[str]()

    def by(self, name: str) -> str:
        """Name of the operator: as given, and that of the token."""
        named = [word for word in (name, self._context.caller.name) if word]
        return " via ".join(named) or NOBODY

    def controlled(self) -> Controlled:
        """The control of the run, as of now."""
        return self.hub.controlled(self.trace_id, self.instances)

    def halt(self, word: str) -> tuple[str, int]:
        """Find a pending request by id or number: its process and number. Raises `NotDone`."""
        if not word:
            return "", 0
        matches = [
            (at, one.number) for at, one in self.controlled().halted if word in _references(at, one)
        ]
        if len(matches) != 1:
            what = "no request is pending" if not matches else f"{len(matches)} are pending"
            raise NotDone(f"{what} under {word!r}", hint="GET /v1/runs/RUN/control")
        return matches[0]

    def edits_to(self, word: str, wanted: str) -> list[Edit]:
        """Edits that turn a pending request without credentials into another document. `NotDone`."""
        matches = self.controlled().halted
        if word:
            instance, number = self.halt(word)
            matches = [(at, one) for at, one in matches if (at, one.number) == (instance, number)]
        if len(matches) != 1:
            raise NotDone(
                f"{len(matches)} requests are pending", hint="choose one: GET /v1/runs/RUN/control"
            )
        try:
            return between(json.loads(matches[0][1].body or ""), json.loads(wanted))
        except (ValueError, RecursionError) as problem:
            raise NotDone("the edited request is not valid JSON", cause=str(problem)) from None

    def state(self, *, taken: bool = True) -> ControlState:
        """The state as the API returns it."""
        control = self.controlled()
        lease = None if control.lease is None else LeaseItem.model_validate(control.lease)
        return ControlState(
            trace_id=self.trace_id,
            revision=control.revision,
            processes=[ConnectedProcess.model_validate(one) for one in control.processes],
            lease=lease,
            halted=[_item(*one) for one in control.halted],
            taken=taken,
        )

    def send(self, order: ControlOrder, halt: str = "") -> int:
        """Send an order; returns its number. `NotControlled`, `HeldByOther`, `NotDone`, `TooMany`."""
        if self._is_over:
            raise RunOver("this run has ended", hint="playhead fork RUN:POINT, to continue from there")
        instance, number = self.halt(halt)
        order = msgspec.structs.replace(order, halt=number)
        return self.hub.give(order, self.instances, instance)

    async def checkpoint(self, options: CheckpointOrder) -> MadeCheckpoint:
        """Take a checkpoint, and wait until it is stored. Raises as `send`."""
        number = self.send(self.order("checkpoint", options, said=options.label))
        made_at, name = None, None
        with HubWatch(self.hub) as waiting, anyio.move_on_after(options.wait_s):
            while not self.hub.closed:
                waiting.clear()
                # Raises if the agent reports a problem.
                self.hub.taken(number, self.trace_id, self.instances)
                made_at = self.hub.made(number)
                if made_at is not None:
                    break
                if not self.controlled().processes:
                    raise RunOver("the run has ended before its next step")
                await waiting.changed()
            if made_at is not None and made_at[1] < 0:
                raise NotDone("the program is not being recorded at this point: no checkpoint was taken")
            while made_at is not None and name is None and not self.hub.closed:
                name = await anyio.to_thread.run_sync(self._name_of, *made_at)
                if name is None:
                    await anyio.sleep(DELIVERED_S)
        return MadeCheckpoint(trace_id=self.trace_id, name=name, made=made_at is not None)

    def _name_of(self, instance: str, seq: int) -> str | None:
        """The name of the checkpoint with this fact; None: it is not stored yet."""
        store, process = self._context.store, bytes.fromhex(instance)
        if store.tape(process).last() < seq:
            return None
        for one in checkpoints_of(self._context.load(self._context.run(self.trace_id))):
            if one.seq == seq and one.tape.instance == process:
                return one.name
        return None

    async def give(self, options: AnyOrder, order: ControlOrder, halt: str = "") -> ControlState:
        """Send an order, and wait until the agent has taken it. Raises as `send`."""
        number = self.send(order, halt)
        taken = False
        with HubWatch(self.hub) as waiting, anyio.move_on_after(options.wait_s):
            while not taken:
                waiting.clear()
                taken = self.hub.taken(number, self.trace_id, self.instances)
                if not taken:
                    if self.hub.closed:
                        break
                    await waiting.changed()
        return self.state(taken=taken)

    def order(self, what: object, options: AnyOrder, **more: object) -> ControlOrder:
        """An order of the caller."""
        fields = {
            "number": 0,
            "what": what,
            "trace_id": self.trace_id,
            "by": self.by(options.by),
            **more,
        }
        return msgspec.convert(fields, ControlOrder)


def _controlled_run(context: Controlling, run: RunName) -> ControlledRun:
    target = ControlledRun(context, run)
    context.note("control", target.trace_id)
    return target


def _readable_run(context: Reading, run: RunName) -> ControlledRun:
    target = ControlledRun(context, run)
    context.note("read", target.trace_id)
    return target


OrderedRun = Annotated[ControlledRun, Depends(_controlled_run)]
ReadableRun = Annotated[ControlledRun, Depends(_readable_run)]


@router.get("/v1/control")
def list_processes(context: Reading) -> Processes:
    """List processes connected for live control."""
    context.note("read", "control")
    processes = context.services.hub.connected()
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
            for one, lease in processes
        ]
    )


@router.get("/v1/runs/{run}/control")
async def show_control(
    target: ReadableRun,
    after: Annotated[
        int | None, Query(ge=0, le=(1 << 63) - 1, description="Wait until `revision` differs from this.")
    ] = None,
    wait_s: Annotated[float, Query(ge=0, le=9, description="Maximum wait, in seconds.")] = 5.0,
) -> ControlState:
    """Get who controls a run, and its pending requests."""
    if after is not None:
        with HubWatch(target.hub) as waiting, anyio.move_on_after(wait_s):
            waiting.clear()
            while target.hub.revision == after and not target.hub.closed:
                await waiting.changed()
                waiting.clear()
    return target.state()


@router.post("/v1/runs/{run}/pause")
async def pause_run(target: OrderedRun, options: PauseOrder) -> ControlState:
    """Pause a run before its next request. Responses in flight are held back, except over gRPC."""
    return await target.give(options, target.order("pause", options, lease_s=options.lease_s))


@router.post("/v1/runs/{run}/step")
async def step_run(target: OrderedRun, options: StepOrder) -> ControlState:
    """Release one pending request, the oldest by default. The run stays paused."""
    return await target.give(
        options, target.order("step", options, lease_s=options.lease_s), options.halt
    )


@router.post("/v1/runs/{run}/continue")
async def continue_run(target: OrderedRun, options: ContinueOrder) -> ControlState:
    """Continue a paused run, or release one pending request."""
    return await target.give(options, target.order("continue", options), options.halt)


@router.post("/v1/runs/{run}/checkpoint")
async def order_checkpoint(target: OrderedRun, options: CheckpointOrder) -> MadeCheckpoint:
    """Take a checkpoint at the next step without pausing the run, even if someone else controls it."""
    return await target.checkpoint(options)


@router.post("/v1/runs/{run}/edit")
async def edit_request(target: OrderedRun, options: EditOrder) -> ControlState:
    """Edit a pending request, tool arguments, or a registered state. It stays pending."""
    edits = [Edit(one.path, one.value, one.remove, one.add) for one in options.edits]
    if options.body is not None:
        edits += target.edits_to(options.halt, options.body)
    if not edits:
        raise NotDone("nothing is edited")
    return await target.give(
        options, target.order("edit", options, edits=edits, state=options.state), options.halt
    )


@router.post("/v1/runs/{run}/reject")
async def reject_request(target: OrderedRun, options: RejectOrder) -> ControlState:
    """Reject a pending request: it is not sent, and the program gets an error."""
    return await target.give(
        options, target.order("reject", options, said=options.message), options.halt
    )


@router.post("/v1/runs/{run}/answer")
async def answer_request(target: OrderedRun, options: AnswerOrder) -> ControlState:
    """Answer a pending request by hand: it is not sent."""
    answer = HandAnswer(options.body, options.status)
    return await target.give(options, target.order("answer", options, answer=answer), options.halt)


@router.post("/v1/runs/{run}/breakpoints")
async def set_breakpoints(target: OrderedRun, options: Breakpoints) -> ControlState:
    """Set the breakpoints of a run. The agent evaluates them."""
    return await target.give(options, _rules(target, options, "pause", options.on))


@router.post("/v1/runs/{run}/limits")
async def set_limits(target: OrderedRun, options: Limits) -> ControlState:
    """Set the limits of a run. The agent evaluates them."""
    return await target.give(options, _rules(target, options, "stop", options.stop))


@router.post("/v1/runs/{run}/lease")
async def renew_lease(target: OrderedRun, options: RenewOrder) -> ControlState:
    """Renew the lease on a run."""
    return await target.give(options, target.order("renew", options, lease_s=options.lease_s))


def _rules(target: ControlledRun, options: LeasedOrder, action: str, texts: list[str]) -> ControlOrder:
    """An order that replaces the rules of one action; rules of the other action stay."""
    new_rules = [str(rule) for rule in read_rules(f"{action} {text}" for text in texts)]
    lease = target.controlled().lease
    kept = [] if lease is None else [rule for rule in lease.rules if not rule.startswith(f"{action} ")]
    return target.order("rules", options, rules=[*kept, *new_rules], lease_s=options.lease_s)


def _id(instance: str, halt: Halted) -> str:
    return f"{instance[:8]}-{halt.number}"


def _references(instance: str, halt: Halted) -> tuple[str, str]:
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
