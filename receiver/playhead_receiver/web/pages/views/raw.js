// The exchanges of a span: headers, bytes as they were, and when each piece of an answer came.
import { html, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { Json, LeftOut, Text, useAsked, Waiting } from "../parts.js";
import { drawChunks } from "../timeline.js";
import { brief, shown, took } from "../words.js";

const MOST_CHUNKS = 500;

/** @param {{path: string}} props */
export function Raw({ path }) {
  const { value, problem } = useAsked(`${path}/exchanges`);
  if (!value) return html`<${Waiting} problem=${problem} />`;
  if (!value.exchanges.length)
    return html`<${LeftOut} sentences=${["no exchange is recorded for this span; record with --level exchanges"]} />`;
  return value.exchanges.map((/** @type {any} */ one, /** @type {number} */ at) => html`<section key=${one.id}>
    <h3>${value.exchanges.length > 1 ? `attempt ${at + 1}: ` : ""}${brief(one.key)} <span class=${one.status_code >= 400 ? "bad" : "quiet"}>${one.status_code ?? "no response"} ${one.end ?? "incomplete"}</span></h3>
    ${one.error && html`<p class="problem">${shown(one.error)}</p>`}
    <${Headers} pairs=${one.request_headers} name="request headers" /><${Bytes} body=${one.request} name="request" />
    <${Headers} pairs=${one.response_headers} name="response headers" /><${Chunks} chunks=${one.chunks} began=${one.started_ns} />
    <${Bytes} body=${one.response} name="response" />
  </section>`);
}

/** @param {{pairs: [string, string][], name: string}} props */
function Headers({ pairs, name }) {
  return html`<details><summary>${name} <span class="quiet">${pairs.length}</span></summary>
    <table><tbody>${pairs.map(([key, value], at) => html`<tr key=${at}><td>${shown(key)}</td><td class="text">${shown(value)}</td></tr>`)}</tbody></table></details>`;
}

/** A body verbatim, and as a tree where it is JSON. @param {{body: any, name: string}} props */
function Bytes({ body, name }) {
  const tree = useMemo(() => treeOf(body?.text), [body]);
  if (!body) return html`<p class="note">${name}: no content was recorded</p>`;
  return html`<h3>${name}</h3>${tree !== undefined && html`<${Json} value=${tree} name="as JSON" />`}
    ${body.text !== null && body.text !== undefined ? html`<${Text} text=${body.text} />` : html`<${Text} text=${`base64 ${body.base64}`} />`}`;
}

/** The value that a text is as JSON; undefined: it is none. @param {string | null | undefined} text */
function treeOf(text) {
  try {
    return text ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

/** When the pieces of an answer came, on an axis and as a table. @param {{chunks: any[], began: number}} props */
function Chunks({ chunks, began }) {
  const canvas = useRef(/** @type {any} */ (null));
  const [most, setMost] = useState(MOST_CHUNKS);
  useLayoutEffect(() => { if (canvas.current) drawChunks(canvas.current, chunks.map((one) => one.time_ns - began), chunks.map(sizeOf)); }, [chunks]);
  if (!chunks.length) return null;
  return html`<div class="axis"><canvas class="chunks" ref=${canvas} aria-hidden="true"></canvas><span class="quiet">first after ${took(chunks[0].time_ns - began)}</span><span class="quiet">last after ${took(chunks.at(-1).time_ns - began)}</span></div>
    <details><summary>${chunks.length} chunks</summary>
    <table><thead><tr><th scope="col" class="right">After</th><th scope="col" class="right">Interval</th><th scope="col">As on the wire</th></tr></thead>
    <tbody>${chunks.slice(0, most).map((one, at) => html`<tr key=${at}><td class="right">${took(one.time_ns - began)}</td><td class="right">${at ? took(Math.max(0, one.time_ns - chunks[at - 1].time_ns)) : ""}</td><td class="text">${shown(one.text ?? `base64 ${one.base64}`)}</td></tr>`)}</tbody></table>
    ${chunks.length > most && html`<button onClick=${() => setMost(most + MOST_CHUNKS)}>${chunks.length - most} more</button>`}</details>`;
}

/** @param {{text: string | null, base64: string | null}} chunk */
const sizeOf = (chunk) => chunk.text?.length ?? ((chunk.base64?.length ?? 0) * 3) / 4;
