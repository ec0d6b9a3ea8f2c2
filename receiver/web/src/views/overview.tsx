// What a run was: why it ended as it did, what was asked and answered, how it was started, its tool calls, its time and agents.
import { Check, Copy } from "lucide-react";
import { useState } from "preact/hooks";
import { link } from "../address.ts";
import type { Outline } from "../outline.ts";
import { Card, Formatted, Json, Text, useAsked } from "../parts.tsx";
import { pathOf } from "../questions.ts";
import { brief, cost, date, shown, took } from "../words.ts";
import { Agents } from "./agents.tsx";
import { Notes, type NoteBook, withoutNotes } from "./notes.tsx";
import { TimeSplit } from "./time_split.tsx";

const EXIT = "playhead.process.exit";
const EXIT_CODE = "playhead.process.exit_code";
const MOST_CALLS = 50;
const OWN_FRAME = /^\s*File "(?!.*(site-packages|dist-packages|\/lib\/python))/;

export function Overview({ outline, book }: { outline: Outline; book: NoteBook }) {
  const run = outline.run;
  // A span that has not ended has not arrived.
  const hasRoot = outline.duration[outline.ids.indexOf(run.root_span_id)] >= 0;
  const root = useAsked(hasRoot ? `spans/${run.trace_id}/${run.root_span_id}` : "").value;
  const exits = useAsked(`${pathOf(run.name)}/events`, { name: EXIT, limit: 5 }).value;
  const calls = useAsked(`${pathOf(run.name)}/tool-calls`).value?.tool_calls ?? [];
  const why = useAsked(`${pathOf(run.name)}/failures`).value;
  const scores = withoutNotes(useAsked(`${pathOf(run.name)}/scores`).value?.scores ?? [], book.notes);
  const noted = [...new Set<number>(book.notes.filter((one) => one.step !== null).map((one) => one.step))].sort((one, other) => one - other);
  const failed = outline.nextFailed(-1, 1);
  const broken = useAsked(failed >= 0 ? `spans/${run.trace_id}/${outline.ids[failed]}` : "").value;
  const at = root?.attributes ?? {};
  const exit = exits?.events.at(-1)?.attributes[EXIT_CODE];
  const trace = tracebackOf(root) ?? tracebackOf(broken);
  const unrecorded = Object.entries<string[]>(why?.unrecorded ?? {}).map(([library, hosts]) => `${library || "the program"} with ${hosts.join(", ")}`);
  const rows: [string, any][] = [
    ["Status", <Why run={run} broken={broken} reason={why?.status_reason} />],
    ["Started", date(run.started_ns)],
    ["Duration", took(run.ended_ns === null ? -1 : run.ended_ns - run.started_ns)],
    ["Exit status", exit ?? ""],
    ["Agent", [run.agent, run.version && `version ${run.version.slice(0, 12)}`, run.environment].filter(Boolean).map((one: string) => brief(one, 60)).join(", ")],
    ["Not recorded", unrecorded.length ? <span class="odd">{brief(`traffic of ${unrecorded.join("; ")}`, 400)}</span> : ""],
    ["Command", at["playhead.run.argv"] ? <code>{brief(["python", ...at["playhead.run.argv"]].join(" "), 400)}</code> : ""],
    ["Folder", at["playhead.run.cwd"] ? <code>{brief(at["playhead.run.cwd"])}</code> : ""],
    ["Models", brief(run.models.join(", "))],
    ["Tools", brief(run.tools.join(", "))],
    ["Users", brief(run.users.join(", "))],
    ["Sessions", brief(run.conversations.join(", "))],
    ["Tokens", run.input_tokens || run.output_tokens ? `${run.input_tokens.toLocaleString("en-US")} in, ${run.output_tokens.toLocaleString("en-US")} out${run.cached_tokens ? `, ${run.cached_tokens.toLocaleString("en-US")} cached` : ""}` : ""],
    ["Cost", cost(run.cost_usd)],
    ["Trace id", <Copied text={run.trace_id} />],
  ];
  return <section class="detail overview" aria-label="overview" tabIndex={0}>
    <Card name="Input"><Formatted text={run.input} none="The recording has no input text." /></Card>
    <Card name="Output"><Formatted text={run.result} none="The recording has no output text." /></Card>
    {trace && <Card name="Traceback"><Traceback text={trace} /></Card>}
    {why?.failures.length > 0 && <Card name={`Failures (${why.failures.length})`}><table><thead><tr><th scope="col">Step</th><th scope="col">What failed</th><th scope="col">Evidence</th></tr></thead>
      <tbody>{why.failures.slice(0, MOST_CALLS).map((one: any, at: number) => <tr key={at}><td>{one.step ? <a href={link({ view: "run", run: run.name, step: one.step })}>{one.place ?? one.step}</a> : ""}</td><td><span class={one.recovered ? "odd" : "bad"}>{brief(one.code.replaceAll("_", " "), 60)}</span> <span class="quiet">{brief(one.name, 60)}{one.times > 1 ? `, ${one.times} times` : ""}{one.recovered ? ", recovered" : ""}</span></td><td class="text">{brief(one.evidence, 300)}</td></tr>)}</tbody></table></Card>}
    <TimeSplit outline={outline} />
    <Agents outline={outline} />
    <Card name={`Notes (${book.notes.length})`}><Notes book={book} step={null} />
      {noted.length > 0 && <p>Notes about steps: {noted.map((step) => <><a key={step} href={link({ view: "run", run: run.name, step })}>step {step}</a> </>)}</p>}</Card>
    {scores.length > 0 && <Card name={`Scores (${scores.length})`}><Scores run={run.name} scores={scores} /></Card>}
    {calls.length > 0 && <Card name={`Tool calls (${calls.length})`}><table><thead><tr><th scope="col">Step</th><th scope="col">Tool</th><th scope="col">Arguments</th><th scope="col">Result</th></tr></thead>
      <tbody>{calls.slice(0, MOST_CALLS).map((one: any) => <tr key={one.number}><td><a href={link({ view: "run", run: run.name, step: one.asked_by })}>{one.number}</a></td><td class={one.error ? "bad" : "k-tool"}>{brief(one.name, 60)}</td><td><Small value={one.arguments} /></td><td>{one.error ? <span class="bad">{brief(one.error, 200)}</span> : <Small value={one.result} />}</td></tr>)}</tbody></table>
      {calls.length > MOST_CALLS && <p class="note">{calls.length - MOST_CALLS} more: playhead show --tools</p>}</Card>}
    <Card name="Run"><dl class="facts">{rows.filter(([, value]) => value !== "" && value !== undefined).map(([name, value]) => <><dt key={name}>{name}</dt><dd>{value}</dd></>)}</dl></Card>
  </section>;
}

/** Results of evaluations: of a run, or of one step. */
export function Scores({ run, scores }: { run: string; scores: any[] }) {
  return <table><thead><tr><th scope="col">Step</th><th scope="col">Score</th><th scope="col" class="right">Value</th><th scope="col">Explanation</th></tr></thead>
    <tbody>{scores.slice(0, MOST_CALLS).map((one, at) => <tr key={at}><td>{one.step ? <a href={link({ view: "run", run, step: one.step })}>{one.step}</a> : ""}</td><td>{brief(one.name, 60)} <span class="quiet">{brief(one.evaluator ?? "", 60)}</span></td><td class="right">{one.value ?? ""} {brief(one.label ?? "", 40)}</td><td class="text">{brief(one.explanation ?? "", 300)}</td></tr>)}</tbody></table>;
}

/** The status of a run, and why it failed. */
function Why({ run, broken, reason }: { run: any; broken: any; reason?: string }) {
  const why = run.status === "failure" ? broken?.status_message || run.error_types.join(", ") : reason;
  return <><Status status={run.status} />{why && <> <span class="bad">{brief(why, 300)}</span></>}</>;
}

const TONES: Record<string, string> = { success: "good", failure: "bad", interrupted: "bad", running: "odd", partial: "odd" };

export function Status({ status }: { status: string }) {
  return <span class={`badge ${TONES[status] ?? "quiet"}`}>{status}</span>;
}

/** A short value in one line, a long one as a tree. */
function Small({ value }: { value: any }) {
  if (value === null || value === undefined) return <span class="quiet">none</span>;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length <= 120 ? <span class="text">{brief(text, 120)}</span> : <Json value={value} name="value" />;
}

/** A text that a click copies. */
export function Copied({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  return <><code>{text}</code> <button class="link" aria-label={copied ? "copied" : `copy ${text}`} onClick={() => navigator.clipboard.writeText(text).then(() => setCopied(true))}>{copied ? <Check size={13} /> : <Copy size={13} />}</button></>;
}

/** The traceback in a span's events or attributes. */
function tracebackOf(span: any): string | undefined {
  const texts = (span?.events ?? []).map((one: any) => one.attributes["exception.stacktrace"]);
  return [...texts, span?.attributes["exception.stacktrace"]].filter(Boolean).at(-1);
}

/** A traceback; frames of libraries are folded. */
function Traceback({ text }: { text: string }) {
  const [all, setAll] = useState(false);
  const lines = text.trimEnd().split("\n");
  let own = true;
  const kept = lines.filter((line) => {
    if (/^\s*File "/.test(line)) own = OWN_FRAME.test(line);
    else if (!/^\s/.test(line)) own = true;
    return own;
  });
  const hidden = lines.length - kept.length;
  return <><Text text={all ? text : kept.join("\n")} />{hidden > 0 && <button onClick={() => setAll(!all)}>{all ? "Only the program's frames" : `Show ${shown(hidden)} lines of libraries`}</button>}</>;
}
