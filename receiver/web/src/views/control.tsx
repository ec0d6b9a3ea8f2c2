// A run that goes on and takes orders: paused, stepped, what waits edited, approved, rejected, answered.
import { ask, order } from "../api.ts";
import { useEffect, useState } from "preact/hooks";
import { Text, useAsked, useKept, useKeys } from "../parts.tsx";
import { pathOf } from "../questions.ts";
import { age, brief, date, shown } from "../words.ts";
import { changedLines } from "../word_difference.ts";
import { Words } from "./compare.tsx";

const AUTHOR = "playhead-author";
const WAIT_S = 5;
const AGAIN_MS = 2000;
const MOST_EVENTS = 50;

/** Who holds a run and what of it waits; nothing where it takes no orders. @param heard counts what came of the run @param keys whether keys of the page are orders */
export function Control({ name, heard, keys = true }: {name: string, heard: number, keys?: boolean}) {
  const [state, setState] = useState<any>(null);
  const [by, setBy] = useState(localStorage.getItem(AUTHOR) ?? "");
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    const follow = async () => {
      let wanted: Record<string, number> = {};
      for (;;) {
        const found = await ask(`${pathOf(name)}/control`, wanted, stop.signal);
        setState(found);
        if (!found.processes.length) await new Promise((done) => setTimeout(done, AGAIN_MS));
        if (stop.signal.aborted) return;
        wanted = { after: found.revision, wait_s: WAIT_S };
      }
    };
    follow().catch((refused) => stop.signal.aborted || setProblem(refused.message));
    return () => stop.abort();
  }, [name]);
  const say = (what: string, /** @type {any} */ body = {}) =>
    order("POST", `${pathOf(name)}/${what}`, { ...body, by }).then(
      (found) => { setProblem(found.taken ? "" : "the agent has not responded yet; it will receive the command"); setState(found); },
      (refused) => { setProblem(refused.message); throw refused; },
    );
  const give = (what: string, /** @type {any} */ body = {}) => { say(what, body).catch(() => undefined); };
  const able = state?.processes.length > 0;
  const paused = state?.lease?.paused || state?.halted.length > 0;
  useKeys((key) => {
    if (!able || !keys || !["P", "c", "."].includes(key)) return false;
    give(key === "P" ? "pause" : key === "c" ? "continue" : "step");
    return true;
  });
  if (!able) return null;
  return <section class="rerun" aria-label="control">
    <div class="bar"><b class={paused ? "odd" : "good"} role="status">{state.halted.length ? `${state.halted.length} pending` : paused ? "pauses at its next step" : "running"}</b>
      {state.lease && <span class="quiet">held by {brief(state.lease.holder)} for {Math.round(state.lease.left_s)} s {brief(state.lease.rules.join(", "))}</span>}
      <button name="pause" onClick={() => give("pause")}>pause</button><button name="step" disabled={!paused} onClick={() => give("step")}>step</button><button name="continue" disabled={!state.lease && !paused} onClick={() => give("continue")}>continue</button>
      <input name="by" aria-label="your name" placeholder="your name" value={by} onInput={(event: any) => { localStorage.setItem(AUTHOR, event.target.value); setBy(event.target.value); }} /></div>
    {problem && <p class="problem" role="alert">{shown(problem)}</p>}
    {state.halted.map((one: any) => <Halted key={one.id} one={one} say={say} give={give} />)}
    <Interventions name={name} again={state.revision + heard} /></section>;
}

/** What operators did, and who: from the recording, so a replay has it too. */
function Interventions({ name, again }: { name: string; again: number }) {
  const found = useKept(useAsked(`${pathOf(name)}/events`, { name: "playhead.control", order: "newest", limit: 1000 }, again).value);
  const events = (found?.events ?? []).filter((one: any) => one.attributes["playhead.control.by"]).sort((one: any, other: any) => other.time_ns - one.time_ns);
  if (!events.length) return null;
  return <details><summary>what was done ({events.length})</summary><table aria-label="interventions"><thead><tr><th scope="col">Time</th><th scope="col">Who</th><th scope="col">What</th><th scope="col">Reason</th></tr></thead>
    <tbody>{events.slice(0, MOST_EVENTS).map((one: any) => <tr key={`${one.instance} ${one.seq}`}><td>{date(one.time_ns)}</td><td>{brief(one.attributes["playhead.control.by"], 60)}</td><td>{brief(one.attributes["playhead.control.action"] ?? one.name.split(".").at(-1), 60)}</td><td class="text">{brief(one.attributes["playhead.control.reason"] ?? one.attributes["playhead.error.message"] ?? one.text ?? "", 200)}</td></tr>)}</tbody></table></details>;
}

/**
 * Something that waits before it goes out.
 */
function Halted({ one, say, give }: {one: any, say: (what: string, body: any) => Promise<any>, give: (what: string, body: any) => void}) {
  const [mine, setMine] = useState<string | null>(null);
  const [message, setMessage] = useState("");
  const [by, setBy] = useState("");
  const before = pretty(one.body);
  const now = mine ?? before;
  const parts = now === null || before === null ? null : changedLines(before, now);
  const approve = () => {
    const edited = now !== before ? say("edit", { halt: one.id, body: now }) : Promise.resolve();
    edited.then(() => give("continue", { halt: one.id }), () => undefined);
  };
  return <section class="said output" aria-label="pending request"><div class="who">{brief(one.kind)} {brief(one.key)} <span class="quiet">{brief(one.reason)}, since {age(one.since_ns)}, {one.size_bytes} bytes</span></div>
    {before === null && (one.body ? <Text text={one.body} /> : <p class="note">the content is not text, too large, or not recorded</p>)}
    {now !== null && before !== null && <textarea name="waiting" aria-label="request to send" rows={8} spellcheck={false} value={now} onInput={(event: any) => setMine(event.target.value)}></textarea>}
    {parts && now !== before && <Words left={parts.left} right={parts.right} />}
    <div class="bar"><button name="approve" class="main" onClick={approve}>{now === before ? "approve" : "approve as edited"}</button>
      <input aria-label="rejection reason" placeholder="reason" value={message} onInput={(event: any) => setMessage(event.target.value)} />
      <button name="reject" onClick={() => give("reject", { halt: one.id, message })}>reject</button></div>
    <details><summary>answer by hand</summary><textarea aria-label="response" rows={4} spellcheck={false} value={by} onInput={(event: any) => setBy(event.target.value)}></textarea>
      <button name="answer" onClick={() => give("answer", { halt: one.id, body: by })}>answer</button></details></section>;
}

/** JSON over several lines; null where it is none. */
function pretty(text: string | null) {
  try {
    return text === null ? null : JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}
