// The conversation of a run, each message once.
import { here, link, move } from "../address.js";
import { html, useMemo, useState } from "../html.js";
import { LeftOut, Message, useAsked, Waiting } from "../parts.js";
import { took } from "../words.js";
import { pathOf } from "./runs.js";

/** As Markdown, for copying. @param {any[]} said */
export function markdown(said) {
  return said
    .map((one) => {
      const texts = one.parts.map((/** @type {any} */ part) =>
        part.type === "text" ? part.content : "```json\n" + JSON.stringify(part, null, 1) + "\n```");
      return `### ${one.role} (step ${one.step})\n\n${texts.join("\n\n")}\n`;
    })
    .join("\n");
}

/**
 * Results of tools that the model called before, by the ids of the calls.
 * @param {any[]} said
 * @returns {Map<string, {part: any, step: number}>} with the step that was told first
 */
function resultsOf(said) {
  const called = new Set();
  const found = new Map();
  for (const one of said)
    for (const part of one.parts) {
      if (part.type === "tool_call" && part.id) called.add(part.id);
      else if (part.type === "tool_call_response" && called.has(part.id) && !found.has(part.id)) found.set(part.id, { part, step: one.step });
    }
  return found;
}

export function Transcript() {
  const { run = "last", find = "" } = here();
  const { value, problem } = useAsked(`${pathOf(run)}/transcript`);
  const [copied, setCopied] = useState(false);
  const results = useMemo(() => resultsOf(value?.said ?? []), [value]);
  if (!value) return html`<main><${Waiting} problem=${problem} /></main>`;
  const began = value.said[0]?.time_ns ?? 0;
  const lanes = new Set(value.said.map((/** @type {any} */ one) => one.lane));
  const copy = () => navigator.clipboard.writeText(markdown(value.said)).then(() => setCopied(true));
  const sought = find.toLowerCase();
  const beside = (/** @type {any} */ part) => results.get(part.id)?.part === part;
  const shownNow = value.said.filter((/** @type {any} */ one) =>
    sought ? JSON.stringify(one.parts).toLowerCase().includes(sought) : !(one.parts.length && one.parts.every(beside)));
  return html`<main><div class="bar"><button onClick=${copy}>${copied ? "copied" : "copy as Markdown"}</button>
      <input type="search" aria-label="find in the conversation" placeholder="find" value=${find} onChange=${(/** @type {any} */ event) => move({ find: event.target.value })} />
      ${sought && html`<span class="quiet" role="status">${shownNow.length} messages</span>`}</div>
    <${LeftOut} sentences=${value.left_out} />
    ${shownNow.map((/** @type {any} */ one, /** @type {number} */ at) => {
      const head = html`<a href=${link({ view: "run", run, step: one.step })}>step ${one.step}</a>`;
      const when = `+${took(one.time_ns - began)}${lanes.size > 1 && one.lane ? ` ${one.lane}` : ""}`;
      const parts = sought ? one.parts : one.parts.filter((/** @type {any} */ part) => !beside(part));
      const message = html`<${Message} who=${` ${one.role} ${when}`} parts=${parts} kind=${one.kind} results=${sought ? undefined : results}>${head}</${Message}>`;
      return html`<article key=${at}>${one.kind === "system" || one.kind === "tools"
        ? html`<details><summary>${one.kind === "tools" ? `${one.parts.length} tools` : "system"}</summary>${message}</details>`
        : message}</article>`;
    })}</main>`;
}
