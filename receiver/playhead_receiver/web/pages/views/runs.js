// All runs, with the query language of `playhead ls`: what they sum up to, marks, deletion.
import { order } from "../api.js";
import { go, here, link, move } from "../address.js";
import { html, useEffect, useState } from "../html.js";
import { useLive } from "../live.js";
import { useAsked, useKeys, Waiting } from "../parts.js";
import { completions, fieldAt, OF_RUNS } from "../query_words.js";
import { FIRST, pathOf } from "../questions.js";
import { age, brief, cost, shown, took } from "../words.js";
import { Board } from "./charts.js";
import { Tenants } from "./tenants.js";

const SECOND_MS = 1000;
const SUMS_EVERY = 10;
const MARKS = ["flagged", "held", "test"];
const KEPT = "playhead-queries";
const KEPT_COLUMNS = "playhead-columns";

/** Columns by name: what stands above, what stands in it, and whether it is a number. @type {Record<string, {head: string, cell: (run: any, names: Map<string, string>) => any, right?: boolean}>} */
const COLUMNS = {
  status: { head: "Status", cell: (run) => html`<span class=${run.status === "failure" ? "bad" : run.status === "success" ? "good" : run.status === "running" ? "odd" : ""}>${run.status}</span>` },
  age: { head: "Age", cell: (run) => age(run.started_ns) },
  took: { head: "Duration", right: true, cell: (run) => took(run.ended_ns === null ? -1 : run.ended_ns - run.started_ns) },
  steps: { head: "Steps", right: true, cell: (run) => run.steps },
  failed: { head: "Failed", right: true, cell: (run) => run.errors || "" },
  tokens: { head: "Tokens", right: true, cell: (run) => `${run.input_tokens}→${run.output_tokens}` },
  cost: { head: "Cost", right: true, cell: (run) => cost(run.cost_usd) },
  models: { head: "Models", cell: (run) => brief(run.models.join(", ")) },
  error: { head: "Error", cell: (run) => brief(run.error_types.join(", "), 60) },
  marks: { head: "Marks", cell: (run) => run.marks.join(", ") },
  from: { head: "From", cell: (run, names) => run.origin && html`<a href=${link({ view: "compare", left: originOf(run.origin), right: run.name })}>${brief(names.get(originOf(run.origin)) ?? originOf(run.origin).slice(0, 12), 40)}</a>` },
  agent: { head: "Agent", cell: (run) => brief(run.agent, 40) },
  version: { head: "Version", cell: (run) => brief(run.version, 20) },
  environment: { head: "Environment", cell: (run) => brief(run.environment, 20) },
  tools: { head: "Tools", cell: (run) => brief(run.tools.join(", "), 60) },
  spans: { head: "Spans", right: true, cell: (run) => run.spans },
  input: { head: "Input", cell: (run) => brief(run.input, 80) },
  result: { head: "Result", cell: (run) => brief(run.result, 80) },
  users: { head: "Users", cell: (run) => brief(run.users.join(", "), 40) },
  sessions: { head: "Sessions", cell: (run) => brief(run.conversations.join(", "), 40) },
  tags: { head: "Tags", cell: (run) => brief(run.tags.join(", "), 40) },
  prompts: { head: "Prompts", cell: (run) => brief(run.prompts.join(", "), 40) },
  releases: { head: "Releases", cell: (run) => brief(run.releases.join(", "), 20) },
};
const SHOWN = ["status", "age", "took", "steps", "failed", "tokens", "cost", "models", "error", "marks", "from"];

/** The trace of an origin: what stands before span and step. @param {string} origin */
const originOf = (origin) => origin.split(/[-:]/)[0];

export function Runs() {
  const place = here();
  const heard = useLive(true);
  const [ordered, setOrdered] = useState(0);
  const [second, setSecond] = useState(0);
  const [at, setAt] = useState(0);
  const [said, setSaid] = useState("");
  const [path, wanted] = /** @type {[string, {q: string, sort: string}]} */ (FIRST.runs(place));
  const { value, problem } = useAsked(path, wanted, heard + ordered);
  // Sums over all runs may take long, and are asked for when the rows are there.
  const oldest = useAsked(value ? "runs" : "", { q: wanted.q, sort: "started", order: "ascending", limit: 1 }).value?.runs[0];
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setSecond((before) => before + 1), SECOND_MS); // ages go on
    return () => clearInterval(timer);
  }, []);
  const runs = value?.runs ?? [];
  const chosen = runs[at];
  const columns = (place.columns ?? localStorage.getItem(KEPT_COLUMNS) ?? SHOWN.join(" ")).split(" ").filter((name) => Object.hasOwn(COLUMNS, name));
  const names = new Map(runs.map((/** @type {any} */ run) => [run.trace_id, run.name]));
  const narrow = (/** @type {string} */ q) => go({ ...place, view: "runs", q, after: "" });
  useKeys((key) => {
    if (key === "j" || key === "ArrowDown") setAt(Math.max(0, Math.min(runs.length - 1, at + 1)));
    else if (key === "k" || key === "ArrowUp") setAt(Math.max(0, at - 1));
    else if (key === "g" || key === "G") setAt(key === "g" ? 0 : runs.length - 1);
    else if (key === "Enter" && chosen && document.activeElement === document.body) go({ view: "run", run: chosen.name });
    else if (key === "m" && chosen) go({ ...place, left: chosen.name });
    else if (key === "d" && chosen && place.left) go({ view: "compare", left: place.left, right: chosen.name });
    else return false;
    return true;
  });
  const done = (/** @type {Promise<any>} */ asked) => asked.then(() => { setSaid(""); setOrdered((before) => before + 1); }, (refused) => setSaid(refused.message));
  const sums = { steps: 0, errors: 0, tokens: 0, cost: 0 };
  for (const run of runs) {
    sums.steps += run.steps;
    sums.errors += run.errors;
    sums.tokens += run.input_tokens + run.output_tokens;
    sums.cost += run.cost_usd ?? 0;
  }
  return html`<main>
    <${Asking} query=${wanted.q} sort=${wanted.sort} columns=${columns} narrow=${narrow} />
    ${place.left && html`<p class="note">marked ${brief(place.left)}; press d on another run to compare</p>`}
    ${(problem || said) && html`<${Waiting} problem=${problem || said} />`}
    ${oldest && html`<${Board} query=${wanted.q} spanNs=${Date.now() * 1e6 - oldest.started_ns} again=${Math.floor(second / SUMS_EVERY)} by=${place.by ?? "agent"} choose=${(/** @type {string} */ by) => move({ by })} narrow=${narrow} />`}
    <div class="bar">${value && html`<span class="note" role="status">${runs.length} runs, ${sums.steps} steps, ${sums.errors} failed, ${sums.tokens} tokens${sums.cost ? `, ${cost(sums.cost)}` : ""}</span>`}
      ${chosen && html`<${Actions} key=${chosen.trace_id} run=${chosen} done=${done} />`}</div>
    <table><thead><tr><th scope="col">Name</th>${columns.map((name) => html`<th scope="col" key=${name} class=${COLUMNS[name].right ? "right" : ""}>${COLUMNS[name].head}</th>`)}</tr></thead>
    <tbody>${runs.map((/** @type {any} */ run, /** @type {number} */ row) => html`<tr key=${run.trace_id} aria-selected=${row === at} onClick=${() => setAt(row)}>
      <td><a href=${link({ view: "run", run: run.name })}>${brief(run.name)}</a></td>
      ${columns.map((name) => html`<td key=${name} class=${COLUMNS[name].right ? "right" : ""}>${COLUMNS[name].cell(run, names)}</td>`)}</tr>`)}</tbody></table>
    ${value && !runs.length && html`<p class="note">no runs. Record one: playhead record SCRIPT</p>`}
    ${value?.next && html`<a href=${link({ ...place, view: "runs", after: value.next })}>older</a>`}
  </main>`;
}

/** What is asked for: typed with completion, or kept from before. @param {{query: string, sort: string, columns: string[], narrow: (q: string) => void}} props */
function Asking({ query, sort, columns, narrow }) {
  const [typed, setTyped] = useState(query);
  const [kept, setKept] = useState(() => read());
  useEffect(() => setTyped(query), [query]);
  const field = OF_RUNS[fieldAt(typed)];
  const values = useAsked(field ? "stats" : "", { by: field ?? "none" }).value;
  const keep = (/** @type {string[]} */ queries) => { localStorage.setItem(KEPT, JSON.stringify(queries)); setKept(queries); };
  const show = (/** @type {string} */ name, /** @type {boolean} */ on) => {
    const names = Object.keys(COLUMNS).filter((one) => (one === name ? on : columns.includes(one))).join(" ");
    localStorage.setItem(KEPT_COLUMNS, names);
    move({ columns: names });
  };
  return html`<form class="bar" onSubmit=${(/** @type {any} */ event) => { event.preventDefault(); narrow(event.target.q.value); }}>
      <input type="search" name="q" list="queries" aria-label="query" value=${typed} onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} placeholder=${'agent:refund status:failure since:2d "order 81"'} />
      <datalist id="queries">${completions(typed, (values?.groups ?? []).map((/** @type {any} */ one) => one.key)).map((one) => html`<option key=${one} value=${one}></option>`)}</datalist>
      <${Tenants} />
      <label>by <select value=${sort} onChange=${(/** @type {any} */ event) => move({ sort: event.target.value, after: "" })}>
        ${["started", "duration", "steps", "cost", "tokens"].map((one) => html`<option key=${one}>${one}</option>`)}</select></label>
      <details class="menu"><summary>columns</summary><div>${Object.entries(COLUMNS).map(([name, { head }]) => html`<label key=${name}><input type="checkbox" checked=${columns.includes(name)} onChange=${(/** @type {any} */ event) => show(name, event.target.checked)} /> ${head}</label>`)}</div></details>
      <button type="button" name="keep" disabled=${!query || kept.includes(query)} onClick=${() => keep([...kept, query])}>keep</button>
    </form>
    ${(kept.length > 0 || query) && html`<div class="bar">${query && html`<button onClick=${() => narrow("")}>all runs</button>`}${kept.map((one) => html`<span key=${one}><button aria-pressed=${one === query} onClick=${() => narrow(one)}>${brief(one, 60)}</button><button aria-label=${`forget ${brief(one, 60)}`} onClick=${() => keep(kept.filter((other) => other !== one))}>×</button></span>`)}</div>`}`;
}

/** Queries that were kept. @returns {string[]} */
function read() {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one === "string") : [];
  } catch {
    return [];
  }
}

/** What is done to the run under the cursor. @param {{run: any, done: (asked: Promise<any>) => void}} props */
function Actions({ run, done }) {
  const [sure, setSure] = useState(false);
  const path = pathOf(run.trace_id);
  const set = (/** @type {string} */ mark) => done(order(run.marks.includes(mark) ? "DELETE" : "PUT", `${path}/marks/${mark}`));
  return html`<span class="end"><span class="quiet">${shown(run.name)}</span>
    ${MARKS.map((mark) => html`<button key=${mark} aria-pressed=${run.marks.includes(mark)} onClick=${() => set(mark)}>${mark}</button>`)}
    <button name="delete" class=${sure ? "bad" : ""} onBlur=${() => setSure(false)} onClick=${() => (sure ? done(order("DELETE", path)) : setSure(true))}>${sure ? "delete for good" : "delete"}</button></span>`;
}
