// What each running agent does now and since when, what it says, and the orders that it takes.
import { go, here, link } from "../address.ts";
import { useEffect, useState } from "preact/hooks";
import { KindIcon } from "../icons.tsx";
import { useLive } from "../live.ts";
import { Conversation, Empty, useAsked, useKept, Waiting } from "../parts.tsx";
import { narrowed } from "../query_words.ts";
import { pathOf } from "../questions.ts";
import { age, brief, cost, date, shown } from "../words.ts";
import { Control } from "./control.tsx";

const MOST = 100;
const OPEN = 4;
const SECOND_MS = 1000;
/** By what an agent does: its kind, how it is said, and what stands for a name that is not known. */
const KINDS: Record<string, [string, string, string]> = { model: ["model", "waits for", "a model"], stream: ["model", "receives from", "a model"], tool: ["tool", "runs", "a tool"], request: ["http", "waits for", "a request"], person: ["human", "waits for a person:", ""], code: ["agent", "runs its own code", ""] };

export function Live() {
  const { q = "", run = "" } = here();
  const heard = useLive(true);
  const [, setSecond] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setSecond((before) => before + 1), SECOND_MS); // times go on
    return () => clearInterval(timer);
  }, []);
  const asked = useAsked("runs", { q: narrowed(q, "status", "running"), sort: "started", limit: MOST }, heard);
  const found = useKept(asked.value);
  const processes = useKept(useAsked("control", {}, heard).value)?.processes ?? [];
  const runs: any[] = found?.runs ?? [];
  const stuck = runs.filter((one) => one.stuck).length;
  const waiting = processes.reduce((sum: number, one: any) => sum + one.halted, 0);
  return <main class="live"><form class="bar" onSubmit={(event: any) => { event.preventDefault(); go({ view: "live", q: event.target.q.value }); }}>
      <input type="search" name="q" aria-label="query for running agents" value={q} placeholder="agent:refund user:anna" />
      {found && <b role="status">{runs.length}{found.next ? "+" : ""} running{stuck > 0 && <span class="bad">, {stuck} without progress</span>}{waiting > 0 && <span class="odd">, {waiting} requests pending</span>}</b>}</form>
    {!found && <Waiting problem={asked.problem} />}
    {found && !runs.length && <Empty title="No agent is running" commands={["playhead record agent.py", "playhead record --control pause agent.py"]}>A recorded agent appears here when it starts. With <code>--control</code> it takes orders:</Empty>}
    {runs.map((one, at) => <Agent key={one.trace_id} run={one} heard={heard} controlled={processes.some((process: any) => process.trace_id === one.trace_id)} first={run ? one.name === run : at < OPEN} />)}</main>;
}

/** A running agent. @param first whether it is open at first */
function Agent({ run, heard, controlled, first }: { run: any; heard: number; controlled: boolean; first: boolean }) {
  const [open, setOpen] = useState(first);
  const [kind, does, some] = KINDS[run.now?.what] ?? ["other", "is running", ""];
  return <article class={`card agent ${run.stuck ? "stuck" : ""}`} aria-label={brief(run.name, 60)}><h2><button class="link twist" aria-expanded={open} aria-label={`details of ${brief(run.name, 60)}`} onClick={() => setOpen(!open)}>{open ? "▾" : "▸"}</button><a href={link({ view: "run", run: run.name })}>{brief(run.name, 60)}</a>
      <span class="does"><KindIcon kind={kind} /> {does} {run.now && <b>{brief(run.now.name, 80) || some}</b>} {run.now && <span class="quiet" title={date(run.now.since_ns)}>for {age(run.now.since_ns)}{run.now.what === "stream" && `, last text ${age(run.now.progress_ns)} ago`}</span>}</span>
      {run.stuck && <span class="badge bad">{brief(run.stuck.replaceAll("_", " "), 40)}</span>}{controlled && <span class="badge good">takes orders</span>}
      <span class="end quiet">{[brief(run.agent, 30), `started ${age(run.started_ns)} ago`, `${run.steps} ${run.steps === 1 ? "step" : "steps"}`, `${run.input_tokens}→${run.output_tokens} tokens`, cost(run.cost_usd)].filter(Boolean).join(", ")}</span></h2>
    {open && <div class="in">{run.input && <p class="quiet">asked: {brief(run.input, 300)}</p>}<Saying run={run} heard={heard} />{controlled && <Control name={run.name} heard={heard} keys={false} />}</div>}</article>;
}

/** What the call that goes on has said so far; else the last answer. */
function Saying({ run, heard }: { run: any; heard: number }) {
  const outline = useKept(useAsked(`${pathOf(run.trace_id)}/outline`, {}, heard).value);
  const pending = outline ? outline.span_id.findLastIndex((_: string, at: number) => outline.step[at] > 0 && outline.duration_ns[at] < 0) : -1;
  const span = pending < 0 ? "" : outline.span_id[pending];
  const said = useAsked(span ? `spans/${run.trace_id}/${span}/messages` : "", {}, heard);
  const shownBefore = useKept(said.value);
  const output = shownBefore?.span_id === span ? shownBefore.output_messages : [];
  return <>{output.length > 0 ? <div aria-label="answer so far"><Conversation messages={output} kind="output" /></div> : <p class="quiet">{run.result ? <>last answer: {brief(run.result, 300)}</> : run.steps ? "no text of an answer is recorded" : "nothing was answered yet"}</p>}
    {span && <p><a href={link({ view: "run", run: run.name, step: outline.step[pending] })}>step {shown(outline.step[pending])}: {brief(outline.names[outline.name[pending]], 80)}</a></p>}</>;
}
