// One span: what was said, the raw exchange, its attributes.
import { move } from "../address.ts";
import { part } from "../api.ts";
import { Conversation, Json, LeftOut, Message, Text, useAsked, useSettled, Waiting } from "../parts.tsx";
import { useState } from "preact/hooks";
import { pathOf } from "../questions.ts";
import { brief, cost, date, shown, size, took } from "../words.ts";
import { Again } from "./again.tsx";
import { Notes, type NoteBook, withoutNotes } from "./notes.tsx";
import { Origins } from "./origins.tsx";
import { Scores } from "./overview.tsx";
import { Raw } from "./raw.tsx";

export const TABS = ["messages", "raw", "attributes", "again", "did", "logs"];
/** What a tab is called; addresses have its other name. */
const LABELS: Record<string, string> = { messages: "Messages", raw: "Raw", attributes: "Attributes", again: "Replay & fork", did: "Effects", logs: "Logs" };

export function Step({ outline, row, tab, book }: {outline: import("../outline.ts").Outline, row: number, tab: string, book: NoteBook}) {
  const run = outline.run.name;
  const trace = outline.run.trace_id;
  const span = outline.ids[row];
  const settled = useSettled(span);
  const step = outline.step[row];
  const attempts = outline.attempts(row);
  const Part = PARTS[tab];
  const scores = withoutNotes(useAsked(`${pathOf(run)}/scores`).value?.scores ?? [], book.notes).filter((one: any) => one.span_id === span);
  const facts = [
    `after ${took(outline.start[row])}`,
    took(outline.duration[row]),
    outline.input[row] || outline.output[row] ? `${outline.input[row]}→${outline.output[row]} tokens` : "",
    cost(outline.cost[row]),
    attempts.length > 1 ? `${attempts.length} attempts` : "",
  ];
  return <section class="detail" aria-label="step">
    <h2>{step ? `${step} ` : ""}{brief(outline.title(row))} <span class="quiet">{facts.filter(Boolean).join(", ")}</span></h2>
    <nav class="tabs" aria-label="parts of the step">{TABS.map((one) => <button key={one} aria-pressed={one === tab} onClick={() => move({ tab: one, act: "" })}>{LABELS[one]}</button>)}</nav>
    {scores.length > 0 && <Scores run={run} scores={scores} />}
    {step > 0 && tab !== "again" && <Notes book={book} step={step} />}
    {tab === "again"
      ? <Again run={run} step={step} />
      : span !== settled
        ? <Waiting problem="" />
        : tab === "did"
          ? <Did outline={outline} row={row} />
          : tab === "logs"
          ? <Logs run={run} span={span} />
          : <Part path={`spans/${trace}/${span}`} failed={outline.failed(row)} run={run} step={step} />}
  </section>;
}

type Asked = {path: string, failed: boolean, run: string, step: number};

function Messages({ path, failed, run, step }: Asked) {
  const { value, problem } = useAsked(`${path}/messages`);
  const said = value ? value.input_messages.length + value.output_messages.length : 0;
  const whole = useAsked(failed || (value && !said) ? path : "").value;
  if (!value) return <Waiting problem={problem} />;
  const calls = value.output_messages.some((one: any) => one.parts.some((part: any) => part.type === "tool_call"));
  return <div>
    {failed && whole && <p class="problem">{shown(whole.status_message || whole.attributes["error.type"] || "failed")}</p>}
    {value.system_instructions.length > 0 && <details><summary>system</summary><Message who="system" parts={value.system_instructions} /></details>}
    {value.tool_definitions.length > 0 && <Json value={value.tool_definitions} name="tools" />}
    <Conversation messages={value.input_messages} />
    <Conversation messages={value.output_messages} kind="output" />
    {step > 0 && (calls || whole?.attributes["gen_ai.tool.call.arguments"]) && <Origins key={path} run={run} step={step} />}
    {whole && !said && <Instead path={path} at={whole.attributes} />}
  </div>;
}

/** Of a span without messages: the call of a tool with its result, or the request with its response. */
function Instead({ path, at }: { path: string; at: any }) {
  const tool = at["gen_ai.tool.name"];
  const result = at["gen_ai.tool.call.result"];
  return <>{at["http.request.method"] ? <Raw path={path} /> : tool ? <Message who="tool" parts={[{ type: "tool_call", name: tool, id: at["gen_ai.tool.call.id"] ?? "", arguments: at["gen_ai.tool.call.arguments"] ?? null }, ...(result === undefined ? [] : [{ type: "tool_call_response", id: "", response: result }])]} />
    : <LeftOut sentences={["no messages are recorded for this span"]} />}<Json value={at} name="attributes" /></>;
}

const SAID = { effect: "playhead.effect", state: "playhead.state" };

/** What was done and said from when a step began until the next one did. */
function Did({ outline, row }: {outline: import("../outline.ts").Outline, row: number}) {
  const next = outline.steps[outline.step[row]];
  const to = !outline.step[row] ? outline.ids[row] : next === undefined ? "" : `${Math.round(outline.run.started_ns + outline.start[next])}`;
  const path = `runs/${part(outline.run.name)}`;
  const wanted = { from: outline.ids[row], to, limit: 500 };
  const effects = useAsked(`${path}/events`, { ...wanted, name: SAID.effect });
  const states = useAsked(`${path}/events`, { ...wanted, name: SAID.state });
  const kept = useAsked(`${path}/kept`).value;
  if (!effects.value || !states.value) return <Waiting problem={effects.problem || states.problem} />;
  const began = outline.run.started_ns;
  const files = kept && ["files", "output", "processes"].filter((one) => kept.not_kept[one]);
  return <div>
    {files?.length > 0 && <LeftOut sentences={[`${files.join(", ")} not recorded; level ${kept.not_kept[files[0]]} records them`]} />}
    {!effects.value.events.length && !states.value.events.length && <p class="note">no side effects or state changes in this step</p>}
    {states.value.events.map((one: any) => <section class="said output" key={one.seq}><div class="who">state {brief(one.attributes["playhead.state.name"] ?? "")} +{took(Math.max(0, one.time_ns - began))}</div><Text text={one.text ?? "its content is stored separately; see the playhead view"} /></section>)}
    {effects.value.events.length > 0 && <table><thead><tr><th scope="col" class="right">After</th><th scope="col">Kind</th><th scope="col">Target</th><th scope="col" class="right">Bytes</th></tr></thead>
      <tbody>{effects.value.events.map((one: any) => <tr key={one.seq}><td class="right">{took(Math.max(0, one.time_ns - began))}</td><td>{brief(one.attributes["playhead.effect.kind"] ?? one.name)}</td><td class="text">{shown(one.attributes["playhead.effect.target"] ?? "")}{one.text ? <span class="quiet">{brief(one.text, 300)}</span> : ""}</td><td class="right">{one.size_bytes === null ? "" : size(one.size_bytes)}</td></tr>)}</tbody></table>}
    {effects.value.next && <p class="note">more: playhead events</p>}</div>;
}

function Attributes({ path }: Asked) {
  const { value, problem } = useAsked(path);
  if (!value) return <Waiting problem={problem} />;
  return <div>{["attributes", "events", "links", "resource", "scope"].map((one) => <Json key={one} value={value[one]} name={one} />)}</div>;
}

const PARTS: Record<string, (props: Asked) => any> = { messages: Messages, raw: Raw, attributes: Attributes };

const SEVERE: Record<string, string> = { error: "bad", fatal: "bad", warn: "odd", warning: "odd" };

/** Log records of the span, else of the whole run. */
function Logs({ run, span }: { run: string; span: string }) {
  const [all, setAll] = useState(false);
  const { value, problem } = useAsked(`runs/${part(run)}/logs`, { span: all ? "" : span, limit: 200 });
  return <div><div class="group">{["This span", "Whole run"].map((name, at) => <button key={name} aria-pressed={all === (at === 1)} onClick={() => setAll(at === 1)}>{name}</button>)}</div>
    {!value && <Waiting problem={problem} />}
    {value && !value.logs.length && <p class="note">No log records. A program sends them with the OpenTelemetry logging handler, to the same endpoint as its spans.</p>}
    {value?.logs.length > 0 && <table><thead><tr><th scope="col">Time</th><th scope="col">Level</th><th scope="col">Logger</th><th scope="col">Text</th></tr></thead>
      <tbody>{value.logs.map((one: any, at: number) => <tr key={at}><td>{date(one.time_ns)}</td><td class={SEVERE[String(one.level_name).toLowerCase()] ?? "quiet"}>{brief(one.level_name)}</td><td>{brief(one.logger ?? one.service ?? "", 40)}</td><td class="text">{typeof one.body === "string" ? shown(one.body) : <Json value={one.body} name="body" />}</td></tr>)}</tbody></table>}
    {value?.next && <p class="note">There are more: playhead logs {brief(run)}</p>}</div>;
}
