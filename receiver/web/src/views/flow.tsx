// Which ways many runs take, as a graph; where they part; and the kinds of their failures.
import { go, here, link, move } from "../address.ts";
import { useState } from "preact/hooks";
import { inWords } from "../findings.ts";
import { mainEdges } from "../graph_layout.ts";
import { Empty, useAsked, Waiting } from "../parts.tsx";
import { narrowed, valueIn } from "../query_words.ts";
import { brief, cost, shown, took } from "../words.ts";
import { Conformance } from "./conform.tsx";
import { Drawing, type DrawnEdge, type DrawnNode } from "./drawing.tsx";

const MOST_NODES = 60;
const MOST_RUNS = 1000;
const percent = (share: number) => `${Math.round(share * 1000) / 10} %`;
/** A query for runs that have a step. */
const queryOf = (query: string, node: any) => (node.kind === "tool" ? narrowed(query, "tool", node.label) : query);

export function Flow() {
  const { q = "", least = "0.03" } = here();
  const asked = useAsked("flow", { query: q, runs: MOST_RUNS });
  const flow = asked.value;
  return <main class="flow" tabIndex={0}><form class="bar" onSubmit={(event: any) => { event.preventDefault(); go({ view: "flow", q: event.target.q.value, least }); }}>
      <input type="search" name="q" aria-label="query for runs" value={q} placeholder="agent:refund since:7d" />
      <label>edges from <select name="least" value={least} onChange={(event: any) => move({ least: event.target.value })}>{["0", "0.01", "0.03", "0.1", "0.3"].map((one) => <option key={one} value={one}>{one === "0" ? "all" : percent(Number(one))}</option>)}</select></label>
      {flow && <span class="quiet" role="status">{flow.runs}{flow.truncated ? "+" : ""} runs, {flow.failed} failed, {flow.distinct_ways} ways, {flow.steps} steps</span>}
      <a class="button end" href={link({ view: "runs", q })}>Show as a list</a></form>
    {!flow && <Waiting problem={asked.problem} />}
    {flow && !flow.runs && <Empty title="No run matches" commands={["playhead flow agent:NAME"]}>Write a query for the runs to look at. On the command line:</Empty>}
    {flow?.runs > 0 && <><Graph flow={flow} query={q} least={Number(least) || 0} /><Conformance query={q} runs={MOST_RUNS} /><Kinds query={q} /><Ways flow={flow} /><Points flow={flow} /></>}</main>;
}

/** The graph: nodes by kind, edges as thick as they are frequent, and both as tables. */
function Graph({ flow, query, least }: { flow: any; query: string; least: number }) {
  const [open, setOpen] = useState(false);
  const nodes = flow.nodes.slice(0, MOST_NODES);
  const known = new Set(nodes.map((one: any) => one.label));
  const edges = mainEdges(flow.edges.filter((one: any) => known.has(one.source) && known.has(one.target)), least);
  const selves = new Map<string, number>(edges.filter((one) => one.source === one.target).map((one) => [one.source, one.count]));
  const drawn = nodes.map((node: any): DrawnNode => ({
    label: node.label,
    kind: node.kind,
    title: `${brief(node.label)}: ${node.count} times in ${node.runs} runs, ${node.failures} failed`,
    small: [`${node.count}×`, node.median_ns !== null && took(node.median_ns), selves.has(node.label) && `↻${selves.get(node.label)}`, node.failures > 0 && `${node.failures} failed`].filter(Boolean).join(", "),
    failed: node.failures / node.count,
  }));
  const lines = edges.map((edge): DrawnEdge => ({
    source: edge.source,
    target: edge.target,
    count: edge.count,
    kind: edge.is_rare ? "rare" : "",
    title: `${brief(edge.source, 60)} → ${brief(edge.target, 60)}: ${edge.count} times in ${edge.runs} runs, ${percent(edge.share)}${edge.median_ns === null ? "" : `, median ${took(edge.median_ns)}`}`,
  }));
  return <section aria-label="flow"><Drawing name="graph of the flow" label={`${nodes.length} steps and ${edges.length} edges; the same as a table below`} nodes={drawn} edges={lines} />
    {flow.nodes.length > MOST_NODES && <p class="note">{flow.nodes.length - MOST_NODES} rarer steps are left out of the picture</p>}
    <details onToggle={(event: any) => setOpen(event.currentTarget.open)}><summary>as a table</summary>{open && <><table aria-label="steps"><thead><tr><th scope="col">Step</th><th scope="col">Kind</th><th scope="col" class="right">Times</th><th scope="col" class="right">Runs</th><th scope="col">Failed</th><th scope="col" class="right">Median</th><th scope="col" class="right">P95</th></tr></thead>
      <tbody>{flow.nodes.map((one: any) => <tr key={one.label}><th scope="row">{one.kind === "tool" ? <a href={link({ view: "runs", q: queryOf(query, one) })}>{brief(one.label, 80)}</a> : brief(one.label, 80)}</th><td>{one.kind}</td><td class="right">{one.count}</td><td class="right">{one.runs}</td><td class="bad">{Object.entries(one.failure_codes).map(([code, times]) => `${brief(inWords(code), 40)} ${times}`).join(", ") || (one.failures || "")}</td><td class="right">{one.median_ns === null ? "" : took(one.median_ns)}</td><td class="right">{one.p95_ns === null ? "" : took(one.p95_ns)}</td></tr>)}</tbody></table>
      <table aria-label="edges"><thead><tr><th scope="col">From</th><th scope="col">To</th><th scope="col" class="right">Times</th><th scope="col" class="right">Runs</th><th scope="col" class="right">Share</th><th scope="col" class="right">Dependency</th><th scope="col" class="right">Median time between</th></tr></thead>
      <tbody>{flow.edges.map((one: any) => <tr key={`${one.source}\u0001${one.target}`} class={one.is_rare ? "quiet" : ""}><th scope="row">{brief(one.source, 80)}</th><td>{brief(one.target, 80)}</td><td class="right">{one.count}</td><td class="right">{one.runs}</td><td class="right">{percent(one.share)}</td><td class="right">{one.dependency}</td><td class="right">{one.median_ns === null ? "" : took(one.median_ns)}</td></tr>)}</tbody></table></>}</details></section>;
}

/** Kinds of failures, each with its runs. */
function Kinds({ query }: { query: string }) {
  const { value, problem } = useAsked("failures", { query, runs: MOST_RUNS });
  if (!value) return <Waiting problem={problem} />;
  return <section aria-label="kinds of failures"><h2>Kinds of failures <span class="quiet">{value.failed} of {value.runs} runs failed</span></h2>
    {!value.kinds.length && <p class="note">no run failed</p>}
    {value.kinds.length > 0 && <table aria-label="kinds of failures"><thead><tr><th scope="col">Failure</th><th scope="col">Message</th><th scope="col" class="right">Runs</th><th scope="col" class="right">Share</th><th scope="col" class="right">Cost</th><th scope="col">Explained by</th><th scope="col">Examples</th></tr></thead>
      <tbody>{value.kinds.map((one: any, at: number) => <tr key={at}><td>{one.code ? <a href={link({ view: "runs", q: narrowed(valueIn(query, "status") ? query : narrowed(query, "status", "failure"), "failure", one.code) })}>{brief(inWords(one.code), 60)}</a> : <span class="quiet">unknown</span>} <span class="quiet">{one.type} {brief(one.name, 40)}</span></td><td class="text">{brief(one.message, 200)}</td><td class="right">{one.runs.length}</td><td class="right">{percent(one.share)}</td><td class="right">{cost(one.cost_usd)}</td><td>{brief(one.explained_by.join("; "), 200)}</td>
        <td>{one.runs.slice(0, 3).map((run: string) => <><a key={run} href={link({ view: "run", run })}>{brief(run, 40)}</a> </>)}</td></tr>)}</tbody></table>}</section>;
}

/** Distinct ways through the agent. */
function Ways({ flow }: { flow: any }) {
  return <section aria-label="ways"><h2>Ways <span class="quiet">{shown(flow.distinct_ways)} distinct; a way that {percent(flow.unseen_share)} of all runs take would have been seen</span></h2>
    <table aria-label="ways"><thead><tr><th scope="col" class="right">Runs</th><th scope="col" class="right">Share</th><th scope="col" class="right">Failed</th><th scope="col" class="right">Median</th><th scope="col">Steps</th><th scope="col">Examples</th></tr></thead>
      <tbody>{flow.ways.map((one: any) => <tr key={one.steps.join("\u0001")}><td class="right">{one.count}</td><td class="right">{percent(one.share)}</td><td class={`right ${one.failed ? "bad" : ""}`}>{one.failed || ""}</td><td class="right">{one.median_ns === null ? "" : took(one.median_ns)}</td><td>{brief(one.steps.join(" → "), 400)}</td><td>{one.examples.map((run: string) => <><a key={run} href={link({ view: "run", run })}>{brief(run, 40)}</a> </>)}</td></tr>)}</tbody></table></section>;
}

/** Points at which runs part. */
function Points({ flow }: { flow: any }) {
  if (!flow.points.length) return null;
  return <section aria-label="points"><h2>Where runs part <span class="quiet">a model decides, or the runs vary by themselves</span></h2>
    <table aria-label="points"><thead><tr><th scope="col">At</th><th scope="col">Kind</th><th scope="col">Goes on with</th><th scope="col" class="right">Passed</th><th scope="col">Known</th></tr></thead>
      <tbody>{flow.points.map((one: any) => <tr key={`${one.after}\u0001${one.at}`}><th scope="row">{one.after && <span class="quiet">{brief(one.after, 60)} → </span>}{brief(one.at, 60)}</th><td>{one.kind}</td><td>{one.branches.slice(0, 8).map((branch: any) => <div key={branch.target}>{brief(branch.target, 60)} <b>{percent(branch.share)}</b> <span class="quiet">{branch.count}</span></div>)}</td><td class="right">{one.count}</td><td>{one.is_known ? <span class="good">within ±{percent(flow.margin)}</span> : <span class="odd">needs {one.runs_needed} runs</span>}</td></tr>)}</tbody></table></section>;
}
