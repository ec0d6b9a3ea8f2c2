// How the receiver is: its store, what comes in, how fast it answers, where it sends, who has done what.
import { askText } from "../api.ts";
import { type Figure, quantile, rate, readFigures, share, valueOf } from "../figures.ts";
import { useEffect, useState } from "preact/hooks";
import { useAsked, Waiting } from "../parts.tsx";
import { brief, shown, size } from "../words.ts";
import { Audit, Retention, Tokens } from "./retention_and_access.tsx";

const AGAIN_MS = 2000;
const LOOKS = 60;
const QUESTIONS = "playhead_query_seconds";
const REPLAYS = "playhead_replays_total";
const EXCHANGES = "playhead_replayed_exchanges_total";

interface Look {
  ms: number;
  figures: Figure[];
}

export function Operations() {
  const [looks, setLooks] = useState<Look[]>([]);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const stop = new AbortController();
    const look = () => document.hidden || askText("metrics", stop.signal).then(
      (text) => { setProblem(""); setLooks((before) => [...before.slice(1 - LOOKS), { ms: performance.now(), figures: readFigures(text) }]); },
      (failed) => stop.signal.aborted || setProblem(failed.message),
    );
    look();
    const timer = setInterval(look, AGAIN_MS);
    return () => { stop.abort(); clearInterval(timer); };
  }, []);
  const state = useAsked("../ready", {}, looks.length);
  const now = looks.at(-1);
  return <main tabIndex={0}>
    {state.problem && <p class="problem" role="alert">not ready: {shown(state.problem)}</p>}
    {state.value && <p role="status" class={state.value.status === "ok" ? "good" : "bad"}>ready: {state.value.status} {shown(state.value.problem ?? "")}</p>}
    {problem && <Waiting problem={problem} />}
    {now && <><Figures first={looks[0]} now={now} /><Destinations figures={now.figures} /></>}
    <Spool /><Retention /><Tokens /><Audit />
    <h2>checks to run on the command line</h2>
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

/** What agents on the receiver's machine have not delivered. */
function Spool() {
  const { value } = useAsked("spool");
  if (!value) return null;
  if (value.machine === null) return <p class="note">this receiver does not read a spool: playhead spool ls</p>;
  const { undelivered, refused } = value;
  return <><h2>spool on this machine, {brief(value.machine, 60)}</h2>
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
  return <><h2>destinations</h2><table><thead><tr><th scope="col">Number</th><th scope="col">Delivering</th><th scope="col" class="right">Behind</th><th scope="col" class="right">Sent</th><th scope="col" class="right">Refused</th></tr></thead>
    <tbody>{names.map((one) => <tr key={one}><th scope="row">{shown(one.replace(/\D/g, ""))}</th><td class={of("stuck", one) ? "bad" : "good"}>{of("stuck", one) ? "no" : "yes"}</td>
      <td class="right">{of("behind", one)}</td><td class="right">{of("spans_total", one)}</td><td class="right">{of("spans_refused_total", one)}</td></tr>)}</tbody></table></>;
}
