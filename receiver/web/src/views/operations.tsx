// How the receiver is: its store, what comes in, how fast it answers, where it sends, who has done what.
import { here, move } from "../address.ts";
import { askText } from "../api.ts";
import { type Figure, healthOf, type Look, looksOf, quantile, rate, ratesOver, readFigures, share, valueOf, valuesOver } from "../figures.ts";
import { useEffect, useMemo, useState } from "preact/hooks";
import { useAsked, Waiting } from "../parts.tsx";
import { brief, date, shown, size } from "../words.ts";
import { Chart } from "./charts.tsx";
import { Audit, Retention, Tokens } from "./retention_and_access.tsx";

const AGAIN_MS = 2000;
const LOOKS = 300;
const MINUTE_MS = 60_000;
/** How far back charts go: names in addresses, and minutes. */
const RANGES: [string, string, number][] = [["10m", "10 minutes", 10], ["1h", "1 hour", 60], ["24h", "24 hours", 24 * 60]];
const MOST_ROWS = 60;
const QUESTIONS = "playhead_query_seconds";
const REPLAYS = "playhead_replays_total";
const EXCHANGES = "playhead_replayed_exchanges_total";

/** What was looked at before the view was left. */
let before: Look[] = [];

export function Operations() {
  const [looks, setLooks] = useState<Look[]>(before);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    const look = () => document.hidden || askText("metrics", stop.signal).then(
      (text) => { setProblem(""); before = [...before.slice(1 - LOOKS), { ms: Date.now(), figures: readFigures(text) }]; setLooks(before); },
      (failed) => stop.signal.aborted || setProblem(failed.message),
    );
    look();
    const timer = setInterval(look, AGAIN_MS);
    return () => { stop.abort(); clearInterval(timer); };
  }, []);
  const state = useAsked("../ready", {}, looks.length);
  const now = looks.at(-1);
  const sampled = useAsked("metrics/history", {}, Math.floor((now?.ms ?? 0) / MINUTE_MS)).value;
  const earlier = useMemo(() => (sampled ? looksOf(sampled) : []), [sampled]);
  return <main class="operations" tabIndex={0}>
    {state.problem && <p class="problem" role="alert">Not ready: {shown(state.problem)}</p>}
    {now && <section class="health" role="status" aria-label="health"><span class={`badge ${state.value?.status === "ok" ? "good" : "bad"}`}>{state.value?.status === "ok" ? "ready" : (state.value?.status ?? "not ready")}</span>
      {[...(state.value?.problem ? [{ tone: "bad", text: state.value.problem }] : []), ...healthOf(looks[0], now)].map((one) => <span key={one.text} class={one.tone}>{shown(one.text)}</span>)}</section>}
    {problem && <Waiting problem={problem} />}
    {now && <><Pictures looks={[...earlier.filter(({ ms }) => ms < looks[0].ms), ...looks]} /><h2>Figures</h2><Figures first={looks[0]} now={now} /><Destinations figures={now.figures} /></>}
    <Spool /><Retention /><Tokens /><Audit />
    <h2>Checks to run on the command line</h2>
    <table><tbody>{COMMANDS.map(([command, what]) => <tr key={command}><th scope="row"><code class="text">{command}</code></th><td>{what}</td></tr>)}</tbody></table>
  </main>;
}

const COMMANDS = [
  ["playhead doctor", "where agents deliver, and what is not recorded"],
  ["playhead spool ls", "undelivered recordings on another machine"],
  ["playhead replay RUN", "whether a run can be replayed, and how exactly"],
  ["playhead gc --dry-run", "which runs retention deletes next"],
  ["playhead verify", "whether stored data is intact"],
];

/** Charts with their units, and the same as a table. */
function Pictures({ looks: all }: { looks: Look[] }) {
  const [open, setOpen] = useState(false);
  const { range = "1h" } = here();
  const minutes = (RANGES.find(([name]) => name === range) ?? RANGES[1])[2];
  const looks = all.filter(({ ms }) => ms > all[all.length - 1].ms - minutes * MINUTE_MS);
  const at = looks.map((one) => one.ms / 1000);
  const now = looks[looks.length - 1];
  const destinations = now.figures.filter((one) => one.name === "playhead_forward_behind").map((one) => one.labels);
  const spans = ratesOver(looks, "playhead_spans_received_total");
  const facts = ratesOver(looks, "playhead_facts_received_total");
  const lag = valuesOver(looks, "playhead_search_lag");
  const store = valuesOver(looks, "playhead_store_bytes");
  const checkpoints = valuesOver(looks, "playhead_checkpoint_store_bytes");
  const rejected = ratesOver(looks, "playhead_items_rejected_total");
  const refused = ratesOver(looks, "playhead_requests_refused_total");
  const queues = destinations.map((labels) => valuesOver(looks, "playhead_forward_behind", labels));
  const queries = ratesOver(looks, `${QUESTIONS}_count`);
  const COLOURS = ["--accent", "--odd", "--bad", "--good"];
  const charts: [string, string, (number | null)[][], string[], (value: number) => string][] = [
    ["Intake", "spans, facts per second", [spans, facts], ["--accent", "--odd"], perSecond],
    ["Lag of the search", "batches not searchable yet", [lag], ["--accent"], count],
    ["Disk", "store, checkpoints", [store, checkpoints], ["--accent", "--odd"], size],
    ["Errors", "rejected items, refused requests per second", [rejected, refused], ["--odd", "--bad"], perSecond],
    ["Queries", "answered per second", [queries], ["--accent"], perSecond],
    ...(queues.length ? [["Forward queues", "items that wait, by destination", queues, queues.map((_, place) => COLOURS[place % COLOURS.length]), count] as any] : []),
  ];
  return <div class="board"><div class="wide group" role="group" aria-label="time range">{RANGES.map(([name, label, of]) => <button key={name} name={name} aria-pressed={of === minutes} onClick={() => move({ range: name })}>{label}</button>)}</div>{charts.map(([name, unit, values, colours, say]) => <figure key={name}><figcaption><b>{name}</b> {unit}: {values.map((one, place) => <b key={place} style={{ color: `var(${colours[place]})` }}>{place > 0 && ", "}{one[one.length - 1] === null ? "–" : say(one[one.length - 1] as number)}</b>)}</figcaption>
      <Chart at={at} step={2} bars={false} values={values} colours={colours} say={say} /></figure>)}
    <details class="wide" onToggle={(event: any) => setOpen(event.currentTarget.open)}><summary>as a table</summary>{open && <table aria-label="looks"><thead><tr><th scope="col">Time</th>{["Spans/s", "Facts/s", "Not searchable", "Store", "Checkpoints", "Rejected/s", "Refused/s", "Queries/s", ...destinations.map((one) => `Waits for ${labelled(one)}`)].map((one) => <th scope="col" class="right" key={one}>{one}</th>)}</tr></thead>
      <tbody>{looks.map((one, place) => [one, place] as const).reverse().slice(0, MOST_ROWS).map(([one, place]) => <tr key={one.ms}><th scope="row">{date(one.ms * 1e6)}</th>
        {[perSecond(spans[place]), perSecond(facts[place]), lag[place], size(store[place]), size(checkpoints[place]), perSecond(rejected[place]), perSecond(refused[place]), perSecond(queries[place]), ...queues.map((queue) => queue[place])].map((value, column) => <td class="right" key={column}>{value}</td>)}</tr>)}</tbody></table>}</details></div>;
}

const labelled = (labels: string) => shown(labels.replace(/\D/g, ""));
const count = (value: number) => value.toLocaleString("en-US", { maximumFractionDigits: 1 });
const perSecond = (value: number | null) => (value === null ? "–" : `${value.toLocaleString("en-US", { maximumFractionDigits: 1 })}/s`);

/** What agents on the receiver's machine have not delivered. */
function Spool() {
  const { value } = useAsked("spool");
  if (!value) return null;
  if (value.machine === null) return <p class="note">this receiver does not read a spool: playhead spool ls</p>;
  const { undelivered, refused } = value;
  return <><h2>Spool on this machine, {brief(value.machine, 60)}</h2>
    {refused > 0 && <p class="note bad">{refused} requests were rejected permanently and stay in the spool</p>}
    {undelivered.length ? <table aria-label="spool"><thead><tr><th scope="col">Agent</th><th scope="col">Process</th><th scope="col" class="right">Facts</th><th scope="col" class="right">Spans</th><th scope="col" class="right">Size</th><th scope="col">Delivered by</th></tr></thead>
      <tbody>{undelivered.map((one: any) => <tr key={one.instance}><th scope="row">{brief(one.agent, 40) || one.instance.slice(0, 8)}</th><td>{one.pid ?? ""}</td><td class="right">{one.facts}</td><td class="right">{one.spans}</td><td class="right">{size(one.size_bytes)}</td><td>{one.alive ? "its own process" : <code class="text">playhead spool push</code>}</td></tr>)}</tbody></table>
      : <p class="note">everything is delivered</p>}</>;
}

function Figures({ first, now }: {first: Look, now: Look}) {
  const of = (name: string) => valueOf(now.figures, name);
  const per = (name: string) => `${rate(first, now, name).toFixed(1)}/s`;
  const within = (share: number) => {
    const s = quantile(now.figures, QUESTIONS, share);
    return Number.isNaN(s) ? "" : s === Infinity ? "> 10 s" : `≤ ${s} s`;
  };
  const failing = now.figures.filter((one) => one.name === "playhead_housekeeping_failing" && one.value);
  const ended = (name: string) => now.figures.filter((one) => one.name === name && one.value)
    .map((one) => `${one.value} ${one.labels.replace(/\w+="([^"]*)"/g, "$1").replace(",", " ")}`).join(", ");
  const growth = rate(first, now, "playhead_store_bytes") * 60;
  const diverged = share(now.figures, REPLAYS, ["diverged", "blocked"], "replay");
  const rows = [
    ["store", size(of("playhead_store_bytes")), `${growth < 0 ? "−" : "+"}${size(Math.abs(Math.round(growth)))}/min`],
    ["spans received", of("playhead_spans_received_total"), per("playhead_spans_received_total")],
    ["facts received", of("playhead_facts_received_total"), per("playhead_facts_received_total")],
    ["rejected", `${of("playhead_items_rejected_total")}, ${of("playhead_requests_refused_total")}`, "items, requests"],
    ["requests in memory", size(of("playhead_intake_bytes")), ""],
    ["queries answered", of(`${QUESTIONS}_count`), [within(0.5), within(0.95)].filter(Boolean).map((one, at) => `${at ? "p95" : "p50"} ${one}`).join(", ")],
    ["replays, forks, resumes", ended(REPLAYS) || "none", "since the receiver started"],
    ...(diverged ? [
      ["identical replays", share(now.figures, REPLAYS, ["identical", "volatile"], "replay"), `${diverged} diverged or were blocked`],
      ["exact exchanges of replays", share(now.figures, EXCHANGES, ["exact"]), ended(EXCHANGES)],
    ] : []),
    ["live streams", of("playhead_live_streams"), ""],
    ["not searchable yet", of("playhead_search_lag"), "batches of spans and facts"],
    ["runs set aside", of("playhead_runs_set_aside"), "which cannot be aggregated"],
    ["tenants open", of("playhead_tenants_open"), ""],
    ["maintenance", failing.length ? "failing" : "ok", failing.map((one) => one.labels).join(", ")],
  ];
  return <table aria-label="figures"><thead><tr><th scope="col">What</th><th scope="col" class="right">Now</th><th scope="col">Since this page was opened</th></tr></thead>
    <tbody>{rows.map(([name, value, more]) => <tr key={name}><th scope="row">{name}</th><td class="right">{value}</td><td>{shown(more)}</td></tr>)}</tbody></table>;
}

function Destinations({ figures }: {figures: Figure[]}) {
  const names = figures.filter((one) => one.name === "playhead_forward_behind").map((one) => one.labels);
  if (!names.length) return <p class="note">nothing is forwarded: playhead up --forward URL</p>;
  const of = (name: string, labels: string) => valueOf(figures, `playhead_forward_${name}`, labels);
  return <><h2>Destinations</h2><table><thead><tr><th scope="col">Number</th><th scope="col">Delivering</th><th scope="col" class="right">Behind</th><th scope="col" class="right">Sent</th><th scope="col" class="right">Refused</th></tr></thead>
    <tbody>{names.map((one) => <tr key={one}><th scope="row">{labelled(one)}</th><td class={of("stuck", one) ? "bad" : "good"}>{of("stuck", one) ? "no" : "yes"}</td>
      <td class="right">{of("behind", one)}</td><td class="right">{of("spans_total", one)}</td><td class="right">{of("spans_refused_total", one)}</td></tr>)}</tbody></table></>;
}
