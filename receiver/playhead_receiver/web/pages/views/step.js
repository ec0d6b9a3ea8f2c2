// One span: what was said, the raw exchange, its attributes.
import { move } from "../address.js";
import { html } from "../html.js";
import { Conversation, Json, LeftOut, Message, Text, useAsked, useSettled, Waiting } from "../parts.js";
import { brief, shown, took } from "../words.js";
import { Again } from "./again.js";

export const TABS = ["messages", "raw", "attributes", "again"];

/** @param {{trace: string, span: string, failed: boolean, tab: string, title: string, step: number, run: string}} props */
export function Step({ trace, span, failed, tab, title, step, run }) {
  const settled = useSettled(span);
  return html`<section class="detail" aria-label="step">
    <h2>${step ? `${step} ` : ""}${brief(title)}</h2>
    <nav class="bar" aria-label="parts of the step">${TABS.map((one, at) => html`<button key=${one} aria-pressed=${one === tab} onClick=${() => move({ tab: one })}>${at + 1} ${one}</button>`)}</nav>
    ${tab === "again"
      ? html`<${Again} run=${run} step=${step} />`
      : span === settled
        ? html`<${PARTS[tab]} path=${`spans/${trace}/${span}`} failed=${failed} />`
        : html`<${Waiting} problem="" />`}
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
    ${!said && html`<${LeftOut} sentences=${["no messages are kept for this span"]} />`}
    ${value.system_instructions.length > 0 && html`<details><summary>system</summary><${Message} who="system" parts=${value.system_instructions} /></details>`}
    ${value.tool_definitions.length > 0 && html`<${Json} value=${value.tool_definitions} name="tools" />`}
    <${Conversation} messages=${value.input_messages} />
    <${Conversation} messages=${value.output_messages} kind="output" />
    ${whole && !said && html`<${Json} value=${whole.attributes} name="attributes" />`}
  </div>`;
}

/** @param {{path: string}} props */
function Attributes({ path }) {
  const { value, problem } = useAsked(path);
  if (!value) return html`<${Waiting} problem=${problem} />`;
  return html`<div>${["attributes", "events", "links", "resource", "scope"].map((one) => html`<${Json} key=${one} value=${value[one]} name=${one} />`)}</div>`;
}

/** @param {{path: string}} props */
function Raw({ path }) {
  const { value, problem } = useAsked(`${path}/exchanges`);
  if (!value) return html`<${Waiting} problem=${problem} />`;
  if (!value.exchanges.length)
    return html`<${LeftOut} sentences=${["no exchange is kept for this span: record with --level exchanges"]} />`;
  return value.exchanges.map((/** @type {any} */ one, /** @type {number} */ at) => html`<section key=${one.id}>
    <h3>${value.exchanges.length > 1 ? `attempt ${at + 1}: ` : ""}${brief(one.key)} <span class=${one.status_code >= 400 ? "bad" : "quiet"}>${one.status_code ?? "no answer"} ${one.end ?? "not ended"}</span></h3>
    ${one.error && html`<p class="problem">${shown(one.error)}</p>`}
    <${Headers} pairs=${one.request_headers} name="request headers" /><${Bytes} body=${one.request} name="request" />
    <${Headers} pairs=${one.response_headers} name="response headers" /><${Bytes} body=${one.response} name="response" />
    <${Chunks} chunks=${one.chunks} began=${one.started_ns} />
  </section>`);
}

/** @param {{pairs: [string, string][], name: string}} props */
function Headers({ pairs, name }) {
  return html`<details><summary>${name} <span class="quiet">${pairs.length}</span></summary>
    <table><tbody>${pairs.map(([key, value], at) => html`<tr key=${at}><td>${shown(key)}</td><td class="text">${shown(value)}</td></tr>`)}</tbody></table></details>`;
}

/** A body verbatim, and as a tree where it is JSON. @param {{body: any, name: string}} props */
function Bytes({ body, name }) {
  if (!body) return html`<p class="note">${name}: no content was recorded</p>`;
  let tree;
  try {
    tree = JSON.parse(body.text);
  } catch {
    tree = undefined;
  }
  return html`<h3>${name}</h3>${tree !== undefined && html`<${Json} value=${tree} name="as JSON" />`}
    ${body.text !== null && body.text !== undefined ? html`<${Text} text=${body.text} />` : html`<${Text} text=${`base64 ${body.base64}`} />`}`;
}

/** When the pieces of an answer came. @param {{chunks: any[], began: number}} props */
function Chunks({ chunks, began }) {
  if (!chunks.length) return null;
  return html`<details><summary>${chunks.length} chunks, the last after ${took(chunks.at(-1).time_ns - began)}</summary>
    <table><thead><tr><th class="right">after</th><th>bytes as on the wire</th></tr></thead>
    <tbody>${chunks.slice(0, 500).map((one, at) => html`<tr key=${at}><td class="right">${took(one.time_ns - began)}</td><td class="text">${shown(one.text ?? `base64 ${one.base64}`)}</td></tr>`)}</tbody></table>
    ${chunks.length > 500 && html`<p class="note">${chunks.length - 500} more</p>`}</details>`;
}

/** @type {Record<string, (props: {path: string, failed: boolean}) => any>} */
const PARTS = { messages: Messages, raw: Raw, attributes: Attributes };
