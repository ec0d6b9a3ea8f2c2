// The conversation of a run, each message once.
import { here, link } from "../address.js";
import { html, useEffect, useMemo, useState } from "../html.js";
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

const A_FRAME = 100;

export function Transcript() {
  const { run = "last" } = here();
  const { value, problem } = useAsked(`${pathOf(run)}/transcript`);
  const [copied, setCopied] = useState(false);
  // A long conversation is there in parts, one a frame, so that its beginning is read at once.
  const [most, setMost] = useState(A_FRAME);
  const articles = useMemo(() => (value ? told(value.said, run) : []), [value]);
  useEffect(() => {
    if (most >= articles.length) return;
    const frame = requestAnimationFrame(() => setMost(most + A_FRAME));
    return () => cancelAnimationFrame(frame);
  }, [most, articles]);
  if (!value) return html`<main><${Waiting} problem=${problem} /></main>`;
  const copy = () => navigator.clipboard.writeText(markdown(value.said)).then(() => setCopied(true));
  return html`<main><div class="bar"><button onClick=${copy}>${copied ? "copied" : "copy as Markdown"}</button></div>
    <${LeftOut} sentences=${value.left_out} />
    ${articles.slice(0, most)}</main>`;
}

/** @param {any[]} said @param {string} run */
function told(said, run) {
  const began = said[0]?.time_ns ?? 0;
  const lanes = new Set(said.map((one) => one.lane));
  return said.map((one, at) => {
    const head = html`<a href=${link({ view: "run", run, step: one.step })}>step ${one.step}</a>`;
    const when = `+${took(one.time_ns - began)}${lanes.size > 1 && one.lane ? ` ${one.lane}` : ""}`;
    const message = html`<${Message} who=${`${one.role} ${when}`} parts=${one.parts} kind=${one.kind} />`;
    return html`<article key=${at}>${head}${one.kind === "system" || one.kind === "tools"
      ? html`<details><summary>${one.kind === "tools" ? `${one.parts.length} tools` : "system"}</summary>${message}</details>`
      : message}</article>`;
  });
}
