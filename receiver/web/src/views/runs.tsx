// All runs, with the query language of `playhead ls`: what they sum up to, marks, deletion.
import { go, here, link, move } from "../address.ts";
import { Save } from "lucide-react";
import { useEffect, useLayoutEffect, useMemo, useState } from "preact/hooks";
import { inWords, whyOf } from "../findings.ts";
import { useLive } from "../live.ts";
import { Empty, useAsked, useKept, useKeys, Waiting } from "../parts.tsx";
import { completions, fieldAt, OF_RUNS } from "../query_words.ts";
import { FIRST } from "../questions.ts";
import { age, brief, cost, date, took } from "../words.ts";
import { Status } from "./overview.tsx";
import { Board } from "./charts.tsx";
import { Facets } from "./facets.tsx";
import { Picked } from "./picked.tsx";
import { Body, Grip, useLongList, useWidths } from "./run_rows.tsx";
import { Tenants } from "./tenants.tsx";
import { TimeRange } from "./time_range.tsx";

const SECOND_MS = 1000;
const SUMS_EVERY = 10;
const KEPT = "playhead-queries";
const KEPT_COLUMNS = "playhead-columns";
/** Width of a text in a list whose columns a person chose. */
const OWN_TEXT_PX = 200;

interface Column {
  head: string;
  cell: (run: any, names: Map<string, string>) => any;
  right?: boolean;
  /** Name of the API's order by this column. */
  sort?: string;
  /** In px; texts share what is left. */
  width?: number;
  /** Class of its cells: which give way first on a small screen unless a person chose them, and which are texts. */
  style?: string;
}

/** Columns by name, in order. An empty column is left out of the table. */
const COLUMNS: Record<string, Column> = {
  status: { head: "Status", width: 150, cell: (run) => <><Status status={run.status} />{run.status !== "success" && <span class="bad"> {brief(whyOf(run), 60)}</span>}</> },
  input: { head: "Input", cell: (run) => run.input && <span title={brief(run.input, 1000)}>{brief(run.input, 160)}</span> },
  result: { head: "Output", style: "wide-only", cell: (run) => run.result && <span title={brief(run.result, 1000)}>{brief(run.result, 160)}</span> },
  agent: { head: "Agent", width: 120, style: "later wide-only", cell: (run) => brief(run.agent, 40) },
  age: { head: "Started", width: 82, sort: "started", cell: (run) => <span title={date(run.started_ns)}>{age(run.started_ns)} ago</span> },
  took: { head: "Duration", width: 80, sort: "duration", right: true, cell: (run) => took(run.ended_ns === null ? -1 : run.ended_ns - run.started_ns) },
  steps: { head: "Steps", width: 62, sort: "steps", right: true, style: "late wide-only", cell: (run) => run.steps },
  failed: { head: "Failed", width: 62, right: true, style: "wide-only", cell: (run) => run.errors || "" },
  tokens: { head: "Tokens", width: 112, sort: "tokens", right: true, style: "wide-only", cell: (run) => `${run.input_tokens}→${run.output_tokens}` },
  cost: { head: "Cost", width: 92, sort: "cost", right: true, cell: (run) => cost(run.cost_usd) },
  models: { head: "Models", width: 130, style: "later wide-only", cell: (run) => brief(run.models.join(", "), 60) },
  error: { head: "Error", width: 110, style: "wide-only", cell: (run) => brief(run.error_types.join(", "), 60) },
  failures: { head: "Failures", width: 120, style: "late wide-only", cell: (run) => brief([...run.loop_names.map((one: string) => `loop ${one}`), ...run.failure_codes].join(", "), 60) },
  now: { head: "Now", width: 170, cell: (run) => run.now && <span title={date(run.now.since_ns)}>{brief(`${run.now.what} ${run.now.name}`.trim(), 40)} {age(run.now.what === "stream" ? run.now.progress_ns : run.now.since_ns)}{run.stuck && <span class="bad"> {run.stuck.replaceAll("_", " ")}</span>}</span> },
  marks: { head: "Marks", width: 90, cell: (run) => run.marks.join(", ") },
  from: { head: "Forked from", width: 110, style: "wide-only", cell: (run, names) => run.origin && <a href={link({ view: "compare", left: originOf(run.origin), right: run.name })}>{brief(names.get(originOf(run.origin)) ?? originOf(run.origin).slice(0, 12), 40)}</a> },
  version: { head: "Version", width: 90, style: "wide-only", cell: (run) => brief(run.version, 20) },
  types: { head: "Agent type", width: 110, style: "wide-only", cell: (run) => brief(run.agent_types.map(inWords).join(", "), 30) },
  environment: { head: "Environment", width: 100, cell: (run) => brief(run.environment, 20) },
  tools: { head: "Tools", width: 150, style: "wide-only", cell: (run) => brief(run.tools.join(", "), 60) },
  spans: { head: "Spans", width: 62, right: true, style: "wide-only", cell: (run) => run.spans },
  users: { head: "Users", width: 100, cell: (run) => brief(run.users.join(", "), 40) },
  sessions: { head: "Sessions", width: 120, cell: (run) => brief(run.conversations.join(", "), 40) },
  tags: { head: "Tags", width: 100, cell: (run) => brief(run.tags.join(", "), 40) },
  prompts: { head: "Prompts", width: 110, cell: (run) => brief(run.prompts.join(", "), 40) },
  releases: { head: "Releases", width: 90, cell: (run) => brief(run.releases.join(", "), 20) },
};
const SHOWN = ["status", "input", "result", "agent", "age", "took", "steps", "tokens", "cost", "models", "failures", "now", "marks", "from"];
/** The trace of an origin: what stands before span and step. */
const originOf = (origin: string) => origin.split(/[-:]/)[0];

const NAME_PX = 160;

/** Of the runs in the list: names by trace id, the columns in which any of them has something, and sums. */
function summed(runs: any[], columns: string[], own: boolean) {
  const names = new Map<string, string>(runs.map((run) => [run.trace_id, run.name]));
  const cells = columns
    .map((name) => ({ name, ...COLUMNS[name], ...(own ? { style: "", width: COLUMNS[name].width ?? OWN_TEXT_PX } : {}) }))
    .filter(({ cell }) => !runs.length || runs.some((run) => ![undefined, null, "", false].includes(cell(run, names))));
  const sums = { steps: 0, errors: 0, tokens: 0, cost: 0 };
  for (const run of runs) {
    sums.steps += run.steps;
    sums.errors += run.errors;
    sums.tokens += run.input_tokens + run.output_tokens;
    sums.cost += run.cost_usd ?? 0;
  }
  return { names, cells, sums };
}

export function Runs() {
  const place = here();
  const heard = useLive(true);
  const [ordered, setOrdered] = useState(0);
  const [second, setSecond] = useState(0);
  const [at, setAt] = useState(0);
  const [path, wanted] = (FIRST.runs(place) as [string, {q: string, sort: string}]);
  const { value, problem } = useAsked(path, wanted, heard + ordered);
  // Sums over all runs may take long, and are asked for when the rows are there.
  const oldest = useAsked(value ? "runs" : "", { q: wanted.q, sort: "started", order: "ascending", limit: 1 }).value?.runs[0];
  const sumsAgain = Math.floor(second / SUMS_EVERY) + ordered;
  const counts = useKept(useAsked(value ? "facets" : "", { q: wanted.q }, sumsAgain).value);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setSecond((before) => before + 1), SECOND_MS); // ages go on
    return () => clearInterval(timer);
  }, []);
  const { runs, more } = useLongList(value, wanted, ordered);
  const chosen = runs[at];
  const own = place.columns ?? localStorage.getItem(KEPT_COLUMNS) ?? "";
  const columns = (own || SHOWN.join(" ")).split(" ").filter((name) => Object.hasOwn(COLUMNS, name));
  const [widths, setWidth] = useWidths();
  const { names, cells, sums } = useMemo(() => summed(runs, columns, own !== ""), [runs, columns.join()]);
  const [picked, setPicked] = useState<string[]>([]);
  const pick = (id: string, on: boolean) => setPicked((before) => on ? [...before, id] : before.filter((one) => one !== id));
  const chosenRuns = picked.map((id) => runs.find((run: any) => run.trace_id === id)).filter(Boolean);
  const every = runs.length > 0 && chosenRuns.length === runs.length;
  const by = (sort: string) => move({ sort, order: wanted.sort === sort && !place.order ? "ascending" : "", after: "" });
  const narrow = (q: string) => go({ ...place, view: "runs", q, after: "" });
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
  const rest = cells.every(({ name, width }) => widths[name] ?? width) && <td></td>; // no column takes the rest of the line
  const wide = (name: string, normal?: number) => ({ width: widths[name] ?? normal ? `${widths[name] ?? normal}px` : undefined });
  return <main class="runs">
    <Asking query={wanted.q} columns={columns} narrow={narrow} />
    {place.left && <p class="note">picked {brief(place.left)}; press d on another run to compare</p>}
    {problem && <Waiting problem={problem} />}
    {oldest && <Board query={wanted.q} spanNs={Date.now() * 1e6 - oldest.started_ns} again={sumsAgain} narrow={narrow} />}
    <Facets query={wanted.q} found={counts} again={sumsAgain} narrow={narrow} />
    <div class="bar">{value && <span class="note" role="status">{runs.length}{counts?.runs > runs.length && ` of ${counts.runs.toLocaleString("en-US")}${counts.truncated ? "+" : ""}`} runs, {sums.steps} steps, {sums.errors} failed, {sums.tokens} tokens{sums.cost ? `, ${cost(sums.cost)}` : ""}</span>}
      {chosen && <Picked runs={chosenRuns.length ? chosenRuns : [chosen]} picked={chosenRuns.length > 0} drop={() => setPicked([])} changed={() => setOrdered((before) => before + 1)} />}</div>
    {runs.length > 0 && <table class="list" aria-rowcount={more ? -1 : runs.length + 1}><thead><tr><th scope="col" style={wide("name", NAME_PX)}><input type="checkbox" name="pick-all" aria-label="pick all runs of this page" checked={every} onChange={() => setPicked(every ? [] : runs.map((run: any) => run.trace_id))} /> Run<Grip head="Run" name="name" px={widths.name ?? NAME_PX} set={setWidth} /></th>{cells.map(({ name, head, right, sort, style, width }) => <th scope="col" key={name} style={wide(name, width)} class={`${right ? "right" : ""} ${style ?? ""}`} aria-sort={sort && sort === wanted.sort ? (place.order ? "ascending" : "descending") : undefined}>{sort ? <button class="link" name={`sort-${sort}`} onClick={() => by(sort)}>{head}{sort === wanted.sort && <span class="sorted" aria-hidden="true" data-order={place.order ? "up" : "down"}></span>}</button> : head}<Grip head={head} name={name} px={widths[name] ?? width} set={setWidth} /></th>)}{rest}</tr></thead>
    <Body runs={runs} at={at} more={more} draw={(run, row) => <tr key={run.trace_id} aria-rowindex={row + 2} aria-selected={row === at} onClick={() => setAt(row)}>
      <td class="name"><input type="checkbox" aria-label={`pick ${brief(run.name)}`} checked={picked.includes(run.trace_id)} onChange={(event: any) => pick(run.trace_id, event.target.checked)} /> <a href={link({ view: "run", run: run.name })} title={brief(run.name)}>{brief(run.name)}</a></td>
      {cells.map(({ name, cell, right, style }) => <td key={name} data-column={name} class={`${right ? "right" : ""} ${style ?? ""}`}>{cell(run, names)}</td>)}{rest}</tr>} /></table>}
    {value && !runs.length && (wanted.q
      ? <div class="empty"><h2>No run matches</h2><p>Remove a word of the query, or look at another time.</p><button onClick={() => narrow("")}>Show all runs</button></div>
      : <Empty title="No runs yet" commands={["playhead record agent.py"]}>Point an OpenTelemetry exporter at this receiver, or record the first run:</Empty>)}
    {more && <button name="more" onClick={more}>More runs</button>}
  </main>;
}

/** What is asked for: typed with completion, or kept from before. */
function Asking({ query, columns, narrow }: {query: string, columns: string[], narrow: (q: string) => void}) {
  const [typed, setTyped] = useState(query);
  const [kept, setKept] = useState(() => read());
  useLayoutEffect(() => setTyped(query), [query]);
  const field = OF_RUNS[fieldAt(typed)];
  const values = useAsked(field ? "stats" : "", { by: field ?? "none" }).value;
  const [name, setName] = useState("");
  const keep = (views: SavedView[]) => { localStorage.setItem(KEPT, JSON.stringify(views)); setKept(views); setName(""); };
  const show = (name: string, on: boolean) => {
    const names = Object.keys(COLUMNS).filter((one) => (one === name ? on : columns.includes(one))).join(" ");
    localStorage.setItem(KEPT_COLUMNS, names);
    move({ columns: names });
  };
  return <><form class="bar" onSubmit={(event: any) => { event.preventDefault(); narrow(event.target.q.value); }}>
      <input type="search" name="q" list="queries" aria-label="query" value={typed} onInput={(event: any) => setTyped(event.target.value)} placeholder={'agent:refund status:failure since:2d "order 81"'} />
      <datalist id="queries">{completions(typed, (values?.groups ?? []).map((one: any) => one.key)).map((one) => <option key={one} value={one}></option>)}</datalist>
      <Tenants />
      <TimeRange query={query} narrow={narrow} />
      <details class="menu"><summary class="button">Columns</summary><div>{Object.entries(COLUMNS).map(([name, { head }]) => <label key={name}><input type="checkbox" checked={columns.includes(name)} onChange={(event: any) => show(name, event.target.checked)} /> {head}</label>)}</div></details>
      {query && !kept.some((one) => one.query === query) && <input name="view-name" aria-label="name of the view" placeholder="name of this view" value={name} onInput={(event: any) => setName(event.target.value)} />}
      <button type="button" name="keep" disabled={!query || kept.some((one) => one.query === query)} onClick={() => keep([...kept, { name: name || query, query }])}><Save size={14} />Save view</button>
    </form>
    {(kept.length > 0 || query) && <div class="bar" role="group" aria-label="saved views">{query && <button onClick={() => narrow("")}>All runs</button>}{kept.map((one) => <Saved key={one.query} view={one} on={one.query === query} narrow={narrow} forget={() => keep(kept.filter((other) => other !== one))} />)}</div>}</>;
}

interface SavedView {
  name: string;
  query: string;
}

/** A saved view with the number of its runs. */
function Saved({ view, on, narrow, forget }: { view: SavedView; on: boolean; narrow: (q: string) => void; forget: () => void }) {
  const runs = useAsked("stats", { q: view.query }).value?.total.runs;
  return <span><button aria-pressed={on} title={brief(view.query)} onClick={() => narrow(view.query)}>{brief(view.name, 60)}{runs !== undefined && <span class="quiet">{runs}</span>}</button><button aria-label={`forget ${brief(view.name, 60)}`} onClick={forget}>×</button></span>;
}

/** The saved views; one that is a text alone has its query as its name. */
function read(): SavedView[] {
  try {
    const found = JSON.parse(localStorage.getItem(KEPT) ?? "[]");
    if (!Array.isArray(found)) return [];
    return found.map((one) => (typeof one === "string" ? { name: one, query: one } : one)).filter((one) => typeof one?.name === "string" && typeof one.query === "string");
  } catch {
    return [];
  }
}
