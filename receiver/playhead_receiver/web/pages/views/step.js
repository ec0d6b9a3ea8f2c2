// One span: what was said, the raw exchange, its attributes.
import { move } from "../address.js";
import { part } from "../api.js";
import { html } from "../html.js";
import { Conversation, Json, LeftOut, Message, Text, useAsked, useSettled, Waiting } from "../parts.js";
import { brief, cost, shown, size, took } from "../words.js";
import { Again } from "./again.js";
import { Raw } from "./raw.js";

export const TABS = ["messages", "raw", "attributes", "again", "did"];
/** What a tab is called, if not by its name in addresses. @type {Record<string, string>} */
const LABELS = { again: "replay & fork", did: "effects" };

/** @param {{outline: import("../outline.js").Outline, row: number, tab: string}} props */
export function Step({ outline, row, tab }) {
  const run = outline.run.name;
  const trace = outline.run.trace_id;
  const span = outline.ids[row];
  const settled = useSettled(span);
  const step = outline.step[row];
  const attempts = outline.attempts(row);
  const facts = [
    `after ${took(outline.start[row])}`,
    took(outline.duration[row]),
    outline.input[row] || outline.output[row] ? `${outline.input[row]}→${outline.output[row]} tokens` : "",
    cost(outline.cost[row]),
    attempts.length > 1 ? `${attempts.length} attempts` : "",
  ];
  return html`<section class="detail" aria-label="step">
    <h2>${step ? `${step} ` : ""}${brief(outline.title(row))} <span class="quiet">${facts.filter(Boolean).join(", ")}</span></h2>
    <nav class="bar" aria-label="parts of the step">${TABS.map((one, at) => html`<button key=${one} aria-pressed=${one === tab} onClick=${() => move({ tab: one })}>${at + 1} ${LABELS[one] ?? one}</button>`)}</nav>
    ${tab === "again"
      ? html`<${Again} run=${run} step=${step} />`
      : span !== settled
        ? html`<${Waiting} problem="" />`
        : tab === "did"
          ? html`<${Did} outline=${outline} row=${row} />`
          : html`<${PARTS[tab]} path=${`spans/${trace}/${span}`} failed=${outline.failed(row)} />`}
  </section>`;
}

/** @param {{path: string, failed: boolean}} props */
function Messages({ path, failed }) {
  const { value, problem } = useAsked(`${path}/messages`);
  const said = value ? value.input_messages.length + value.output_messages.length : 0;
  const whole = useAsked(failed || (value && !said) ? path : "").value;
  if (!value) return html`<${Waiting} problem=${problem} />`;
  return html`<div>
    ${failed && whole && html`<p class="problem">${shown(whole.status_message || whole.attributes["error.type"] || "failed")}</p>`}
    ${!said && html`<${LeftOut} sentences=${["no messages are recorded for this span"]} />`}
    ${value.system_instructions.length > 0 && html`<details><summary>system</summary><${Message} who="system" parts=${value.system_instructions} /></details>`}
    ${value.tool_definitions.length > 0 && html`<${Json} value=${value.tool_definitions} name="tools" />`}
    <${Conversation} messages=${value.input_messages} />
    <${Conversation} messages=${value.output_messages} kind="output" />
    ${whole && !said && html`<${Json} value=${whole.attributes} name="attributes" />`}
  </div>`;
}

const SAID = { effect: "playhead.effect", state: "playhead.state" };

/** What was done and said from when a step began until the next one did. @param {{outline: import("../outline.js").Outline, row: number}} props */
function Did({ outline, row }) {
  const next = outline.steps[outline.step[row]];
  const to = !outline.step[row] ? outline.ids[row] : next === undefined ? "" : `${Math.round(outline.run.started_ns + outline.start[next])}`;
  const path = `runs/${part(outline.run.name)}`;
  const wanted = { from: outline.ids[row], to, limit: 500 };
  const effects = useAsked(`${path}/events`, { ...wanted, name: SAID.effect });
  const states = useAsked(`${path}/events`, { ...wanted, name: SAID.state });
  const kept = useAsked(`${path}/kept`).value;
  if (!effects.value || !states.value) return html`<${Waiting} problem=${effects.problem || states.problem} />`;
  const began = outline.run.started_ns;
  const files = kept && ["files", "output", "processes"].filter((one) => kept.not_kept[one]);
  return html`<div>
    ${files?.length > 0 && html`<${LeftOut} sentences=${[`${files.join(", ")} not recorded; level ${kept.not_kept[files[0]]} records them`]} />`}
    ${!effects.value.events.length && !states.value.events.length && html`<p class="note">no side effects or state changes in this step</p>`}
    ${states.value.events.map((/** @type {any} */ one) => html`<section class="said output" key=${one.seq}><div class="who">state ${brief(one.attributes["playhead.state.name"] ?? "")} +${took(Math.max(0, one.time_ns - began))}</div><${Text} text=${one.text ?? "its content is stored separately; see the playhead view"} /></section>`)}
    ${effects.value.events.length > 0 && html`<table><thead><tr><th scope="col" class="right">After</th><th scope="col">Kind</th><th scope="col">Target</th><th scope="col" class="right">Bytes</th></tr></thead>
      <tbody>${effects.value.events.map((/** @type {any} */ one) => html`<tr key=${one.seq}><td class="right">${took(Math.max(0, one.time_ns - began))}</td><td>${brief(one.attributes["playhead.effect.kind"] ?? one.name)}</td><td class="text">${shown(one.attributes["playhead.effect.target"] ?? "")}${one.text ? html` <span class="quiet">${brief(one.text, 300)}</span>` : ""}</td><td class="right">${one.size_bytes === null ? "" : size(one.size_bytes)}</td></tr>`)}</tbody></table>`}
    ${effects.value.next && html`<p class="note">more: playhead events</p>`}</div>`;
}

/** @param {{path: string}} props */
function Attributes({ path }) {
  const { value, problem } = useAsked(path);
  if (!value) return html`<${Waiting} problem=${problem} />`;
  return html`<div>${["attributes", "events", "links", "resource", "scope"].map((one) => html`<${Json} key=${one} value=${value[one]} name=${one} />`)}</div>`;
}

/** @type {Record<string, (props: {path: string, failed: boolean}) => any>} */
const PARTS = { messages: Messages, raw: Raw, attributes: Attributes };
