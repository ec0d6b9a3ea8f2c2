// What a run means: its goal and result, failures, decisions, states, loops, signals, messages; each leads to its step.
import { Flag, GitBranch, MessageSquare, Radio, Repeat, ShieldAlert, ShieldCheck } from "lucide-react";
import { link } from "../address.ts";
import { inWords, loopsOf, messagesOf, signalsOf, stepOf, timeInStates, type Mark, type MarkKind } from "../findings.ts";
import type { Outline } from "../outline.ts";
import { Card, Formatted, Text, Waiting } from "../parts.tsx";
import { brief, shown, took } from "../words.ts";

const MOST = 200;
const ICONS: Record<MarkKind, [any, string]> = {
  failure: [ShieldAlert, "bad"],
  recovered: [ShieldCheck, "odd"],
  loop: [Repeat, "bad"],
  signal: [Radio, "odd"],
  decision: [GitBranch, "k-model"],
  state: [Flag, "good"],
};
const WORDS: Record<MarkKind, string> = { failure: "failure", recovered: "recovered failure", loop: "loop", signal: "signal", decision: "decided", state: "state" };

/** A mark of a row. */
export function MarkOf({ mark }: { mark: Mark }) {
  const [Icon, tone] = ICONS[mark.kind];
  return <span class={`finding ${tone}`} title={`${WORDS[mark.kind]}: ${brief(mark.text, 200)}`}><Icon size={12} aria-hidden="true" /><span class="hidden">{WORDS[mark.kind]} </span>{brief(mark.text, 24)}</span>;
}

export function Findings({ outline, asked }: { outline: Outline; asked: { value: any; problem: string } }) {
  const found = asked.value;
  const run = outline.run;
  if (!found) return <section class="detail overview" aria-label="findings"><Waiting problem={asked.problem} /></section>;
  const { session, failures, decisions, transitions } = found;
  const loops = loopsOf(found);
  const signals = signalsOf(found);
  const messages = messagesOf(found);
  const facts: [string, any][] = [
    ["Agent type", brief(inWords(session.agent_type), 60)],
    ["Goal", brief(session.goal, 400)],
    ["Kind of goal", brief(inWords(session.goal_type), 60)],
    ["Status", <><b class={session.status === "failed" ? "bad" : ""}>{session.status}</b>{found.status_reason && <span class="odd"> {brief(found.status_reason, 200)}</span>} <Source derived={session.status_derived} /></>],
    ["Triggered by", session.trigger ? brief(inWords(session.trigger), 200) : ""],
    ["Parent run", session.parent ? <a href={link({ view: "run", run: session.parent })}>{brief(session.parent, 60)}</a> : ""],
    ["Result", session.result ? brief(session.result, 400) : ""],
  ];
  const nothing = !failures.length && !decisions.length && !loops.length && !signals.length && !messages.length && !transitions.length;
  return <section class="detail overview findings" aria-label="findings" tabIndex={0}>
    <Card name="Goal and result"><dl class="facts">{facts.filter(([, value]) => value).map(([name, value]) => <><dt key={name}>{name}</dt><dd>{value}</dd></>)}</dl></Card>
    {session.task_graph.length > 0 && <Card name={`Tasks (${session.task_graph.length})`}><table><thead><tr><th scope="col">Task</th><th scope="col">Status</th><th scope="col">After</th><th scope="col" class="right">Duration</th></tr></thead>
      <tbody>{session.task_graph.slice(0, MOST).map((one: any) => <tr key={one.id}><td style={{ paddingLeft: `${8 + 16 * Math.min(one.depth, 12)}px` }}><b>{brief(one.id, 60)}</b> {brief(one.name ?? "", 200)}</td>
        <td><span class={one.status === "failed" ? "bad" : ""}>{brief(inWords(one.status ?? ""), 60)}</span></td><td class="quiet">{brief(one.depends_on.join(", "), 120)}</td><td class="right">{one.ended_ns > one.began_ns ? took(one.ended_ns - one.began_ns) : ""}</td></tr>)}</tbody></table></Card>}
    {failures.length > 0 && <Card name={`Failures (${failures.length})`}><table><thead><tr><th scope="col">Step</th><th scope="col">Failure</th><th scope="col">Outcome</th><th scope="col">Evidence</th></tr></thead>
      <tbody>{failures.slice(0, MOST).map((one: any, at: number) => <tr key={at}><td><At run={run.name} place={one.place ?? one.step} /></td>
        <td><b class={one.recovered ? "odd" : "bad"}>{brief(inWords(one.code), 60)}</b> <span class="quiet">{one.type} {brief(one.name, 60)}</span> <Source derived={one.derived} /></td>
        <td>{one.recovered ? <span class="good">recovered</span> : <span class="bad">not recovered</span>}{one.times > 1 && <span class="quiet"> {one.times} times</span>}</td><td class="text">{brief(one.evidence, 300)}</td></tr>)}</tbody></table></Card>}
    {loops.length > 0 && <Card name={`Loops (${loops.length})`}><table><thead><tr><th scope="col">Steps</th><th scope="col">Calls of a round</th><th scope="col" class="right">Rounds</th><th scope="col" class="right">Duration</th></tr></thead>
      <tbody>{loops.slice(0, MOST).map((one, at) => <tr key={at}><td><At run={run.name} place={one.first} /> – <At run={run.name} place={one.last} /></td><td>{brief(one.names.join(" → "), 200)} <Source derived={one.derived} /></td><td class="right bad">{one.times}</td><td class="right">{took(Math.max(0, one.ended_ns - one.started_ns))}</td></tr>)}</tbody></table></Card>}
    {decisions.length > 0 && <Card name={`Decisions (${decisions.length})`}>{decisions.slice(0, MOST).map((one: any, at: number) => <Decision key={at} run={run.name} one={one} />)}
      {decisions.length > MOST && <p class="note">{decisions.length - MOST} more: playhead show --decisions</p>}</Card>}
    {transitions.length > 0 && <Card name={`States (${transitions.length})`}><States run={run} transitions={transitions} /></Card>}
    {signals.length > 0 && <Card name={`Signals (${signals.length})`}><table><thead><tr><th scope="col">Step</th><th scope="col">Signal</th><th scope="col">Value</th><th scope="col">Evidence</th></tr></thead>
      <tbody>{signals.slice(0, MOST).map((one, at) => <tr key={at}><td><At run={run.name} place={one.place} /></td><td><b>{brief(inWords(one.type), 60)}</b> <span class="quiet">{brief(inWords(one.code), 60)} {brief(one.name, 60)}</span> <Source derived={one.derived} /></td>
        <td>{brief(one.value ?? "", 60)}{one.weight !== undefined && <span class="quiet"> weight {one.weight}</span>}</td><td class="text">{brief(one.evidence, 300)}</td></tr>)}</tbody></table></Card>}
    {messages.length > 0 && <Card name={`Messages to agents (${messages.length})`}>{messages.slice(0, MOST).map((one, at) => <div class="said" key={at}><div class="who"><MessageSquare size={13} aria-hidden="true" />to {brief(one.fields.to, 60)} <span class="quiet">{brief(one.fields.kind ?? "", 40)}{one.fields.channel && ` by ${brief(one.fields.channel, 40)}`}</span><span class="end"><At run={run.name} place={one.step} /></span></div><Formatted text={one.fields.content} none="without content" /></div>)}</Card>}
    {nothing && <p class="note">No failure, decision, state or signal was found. A program reports its own with <code>playhead.decision(…)</code>, <code>playhead.phase(…)</code> and <code>playhead.signal(…)</code>.</p>}
  </section>;
}

/** Who says it. */
function Source({ derived }: { derived: boolean }) {
  return <span class="source quiet" title={derived ? "derived from the recorded steps" : "reported by the program"}>{derived ? "derived" : "reported"}</span>;
}

/** The step of a finding, as a link. */
function At({ run, place }: { run: string; place: string | number | null }) {
  return stepOf(place) ? <a href={link({ view: "run", run, step: stepOf(place) })}>{place}</a> : <span class="quiet">none</span>;
}

/** A decision: what was chosen of what, why, and what came of it. */
function Decision({ run, one }: { run: string; one: any }) {
  const rejected = new Map<string, string | null>(one.rejected.map((other: any) => [other.option, other.reason]));
  const options = [...new Set<string>([...one.options, ...rejected.keys()])].filter((option) => option !== one.chosen);
  return <div class="said decision"><div class="who"><GitBranch size={13} aria-hidden="true" />{brief(one.question ?? inWords(one.type), 200)} <Source derived={one.derived} /><span class="end">step <At run={run} place={one.step} /></span></div>
    <p><span class="option chosen">{brief(one.chosen, 120)}</span>{options.slice(0, 12).map((option) => <span class="option quiet" key={option} title={brief(rejected.get(option) ?? "", 300)}>{brief(option, 60)}{rejected.get(option) ? `: ${brief(rejected.get(option), 80)}` : ""}</span>)}
      {one.confidence !== null && <span class="quiet">confidence {Math.round(one.confidence * 100)} %</span>} {one.method && <span class="quiet">{brief(inWords(one.method), 60)}</span>}</p>
    {one.rules.length > 0 && <p><b>Rules</b> {brief(one.rules.join(", "), 400)}</p>}
    {one.reason && <p><b>Why</b> {brief(one.reason, 600)}</p>}
    {one.thought && <details><summary class="quiet">thought</summary><Text text={one.thought} prose /></details>}
    {(one.actions.length > 0 || one.outcome) && <p class="quiet">{one.actions.length > 0 && <>then {one.actions.map((place: string) => <><At key={place} run={run} place={place} /> </>)}</>}{one.outcome && <>→ <span class={one.failed ? "bad" : "good"}>{brief(one.outcome, 200)}</span></>}{one.recovered_by && <>, recovered by <At run={run} place={one.recovered_by} /></>}</p>}</div>;
}

/** How long a run was in which state, as a bar, and every transition. */
function States({ run, transitions }: { run: any; transitions: any[] }) {
  const now = run.ended_ns ?? Date.now() * 1e6;
  const times = timeInStates(transitions, now);
  const whole = Math.max(1, times.reduce((sum, one) => sum + one.ns, 0));
  return <><div class="states" aria-hidden="true">{times.map((one, at) => <span key={one.state} class={`part-${at % 6}`} style={{ width: `${(one.ns / whole) * 100}%` }} title={brief(one.state)}></span>)}</div>
    <ul class="legend">{times.map((one, at) => <li key={one.state}><span class={`dot part-${at % 6}`} aria-hidden="true"></span><b>{brief(inWords(one.state), 60)}</b> <span class="quiet">{took(one.ns)}, {Math.round((one.ns / whole) * 100)} %{one.times > 1 && `, ${one.times} times`}</span></li>)}</ul>
    <table><thead><tr><th scope="col">Step</th><th scope="col">State</th><th scope="col" class="right">Time in it</th><th scope="col">Why</th></tr></thead>
      <tbody>{transitions.slice(0, MOST).map((one) => <tr key={one.sequence}><td><At run={run.name} place={one.step} /></td><td><span class="quiet">{one.previous && `${brief(inWords(one.previous), 40)} → `}</span>{one.state ? brief(inWords(one.state), 60) : <span class="quiet">none</span>} {one.type !== "normal" && <span class="odd">{one.type}</span>}</td>
        <td class="right">{one.lasted_ns === null ? <span class="odd">in it</span> : took(one.lasted_ns)}</td><td>{brief(one.reason ?? inWords(one.trigger), 200)} <Source derived={one.derived} /></td></tr>)}</tbody></table>
    {transitions.length > MOST && <p class="note">{shown(transitions.length - MOST)} more: playhead show --states</p>}</>;
}
