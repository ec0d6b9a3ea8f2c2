// What the recording of a run left out, and which level keeps it.
import { html } from "../html.js";
import { useAsked } from "../parts.js";
import { pathOf } from "../questions.js";
import { brief } from "../words.js";

/** @param {{name: string}} props */
export function Kept({ name }) {
  const { value } = useAsked(`${pathOf(name)}/kept`);
  if (!value) return null;
  const levels = new Map();
  for (const [boundary, level] of Object.entries(value.not_kept)) levels.set(level, [...(levels.get(level) ?? []), boundary]);
  if (value.level === null) return html`<span class="quiet">spans only: no tape, so no replay</span>`;
  return levels.size === 0
    ? html`<span class="quiet">level ${value.level}</span>`
    : html`<details class="menu"><summary class="quiet">level ${value.level}, ${Object.keys(value.not_kept).length} not recorded</summary><div class="list">${[...levels].map(([level, boundaries]) => html`<p key=${level}>${brief(boundaries.join(", "), 400)}: recorded at level ${level}</p>`)}</div></details>`;
}
