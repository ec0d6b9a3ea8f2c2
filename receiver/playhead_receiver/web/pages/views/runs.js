// All runs, with the query language of `playhead ls`.
import { part } from "../api.js";
import { go, here, link, move } from "../address.js";
import { html, useEffect, useState } from "../html.js";
import { useLive } from "../live.js";
import { useAsked, useKeys, Waiting } from "../parts.js";
import { age, brief, cost, took } from "../words.js";

const SECOND_MS = 1000;

export function Runs() {
  const place = here();
  const again = useLive(true);
  const [, setSecond] = useState(0);
  const [at, setAt] = useState(0);
  const wanted = { q: place.q ?? "", sort: place.sort ?? "started", after: place.after ?? "" };
  const { value, problem } = useAsked("runs", wanted, again);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setSecond((before) => before + 1), SECOND_MS); // ages go on
    return () => clearInterval(timer);
  }, []);
  const runs = value?.runs ?? [];
  const open = (/** @type {any} */ run) => go({ view: "run", run: run.name });
  useKeys((key) => {
    if (key === "j" || key === "ArrowDown") setAt(Math.min(runs.length - 1, at + 1));
    else if (key === "k" || key === "ArrowUp") setAt(Math.max(0, at - 1));
    else if (key === "g" || key === "G") setAt(key === "g" ? 0 : runs.length - 1);
    else if (key === "Enter" && runs[at] && document.activeElement === document.body) open(runs[at]);
    else if (key === "m" && runs[at]) go({ ...place, left: runs[at].name });
    else if (key === "d" && runs[at] && place.left) go({ view: "compare", left: place.left, right: runs[at].name });
    else return false;
    return true;
  });
  const sums = { steps: 0, errors: 0, tokens: 0, cost: 0 };
  for (const run of runs) {
    sums.steps += run.steps;
    sums.errors += run.errors;
    sums.tokens += run.input_tokens + run.output_tokens;
    sums.cost += run.cost_usd ?? 0;
  }
  return html`<main>
    <form class="bar" onSubmit=${(/** @type {any} */ event) => { event.preventDefault(); go({ view: "runs", q: event.target.q.value, sort: wanted.sort }); }}>
      <input type="search" name="q" aria-label="query" value=${wanted.q} placeholder="agent:refund status:failure since:2d &quot;order 81&quot;" />
      <label>by <select value=${wanted.sort} onChange=${(/** @type {any} */ event) => move({ sort: event.target.value, after: "" })}>
        ${["started", "duration", "steps", "cost", "tokens"].map((one) => html`<option key=${one}>${one}</option>`)}</select></label>
    </form>
    ${place.left && html`<p class="note">marked ${brief(place.left)}: d on another run compares</p>`}
    ${problem && html`<${Waiting} problem=${problem} />`}
    ${value && html`<p class="note" role="status">${runs.length} runs here, ${sums.steps} steps, ${sums.errors} failed, ${sums.tokens} tokens${sums.cost ? `, ${cost(sums.cost)}` : ""}</p>`}
    <table><thead><tr><th>Name</th><th>Status</th><th>Age</th><th class="right">Took</th><th class="right">Steps</th><th class="right">Failed</th><th class="right">Tokens</th><th class="right">Cost</th><th>Models</th><th>From</th></tr></thead>
    <tbody>${runs.map((/** @type {any} */ run, /** @type {number} */ row) => html`<tr key=${run.trace_id} aria-selected=${row === at}>
      <td><a href=${link({ view: "run", run: run.name })}>${brief(run.name)}</a></td>
      <td class=${run.status === "failure" ? "bad" : run.status === "success" ? "good" : ""}>${run.status}</td>
      <td>${age(run.started_ns)}</td><td class="right">${took(run.ended_ns === null ? -1 : run.ended_ns - run.started_ns)}</td>
      <td class="right">${run.steps}</td><td class="right">${run.errors || ""}</td>
      <td class="right">${run.input_tokens}→${run.output_tokens}</td><td class="right">${cost(run.cost_usd)}</td>
      <td>${brief(run.models.join(", "))}</td><td>${run.origin && html`<a href=${link({ view: "compare", left: run.origin, right: run.name })}>${brief(run.origin, 40)}</a>`}</td></tr>`)}</tbody></table>
    ${value && !runs.length && html`<p class="note">no run here; playhead record SCRIPT records one</p>`}
    ${value?.next && html`<a href=${link({ ...place, view: "runs", after: value.next })}>older</a>`}
  </main>`;
}

/** The path of a run. @param {string} name */
export const pathOf = (name) => `runs/${part(name)}`;
