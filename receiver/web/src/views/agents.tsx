// The agents of a run: who asked whom, how often, how, and how long for, as a graph and as a table.
import { link } from "../address.ts";
import { mainEdges } from "../graph_layout.ts";
import type { Outline } from "../outline.ts";
import { Card, useAsked, Waiting } from "../parts.tsx";
import { pathOf } from "../questions.ts";
import { brief, took } from "../words.ts";
import { Drawing, type DrawnEdge, type DrawnNode } from "./drawing.tsx";

const MOST_NODES = 60;
const MOST_EDGES = 200;

/** Nothing for a run whose agents ask no other agent. */
export function Agents({ outline }: { outline: Outline }) {
  const run = outline.run;
  const { value, problem } = useAsked(outline.whole ? `${pathOf(run.trace_id)}/agents` : "", {}, run.steps);
  if (problem) return <Card name="Agents"><Waiting problem={problem} /></Card>;
  if (!value?.edges.some((one: any) => one.source !== one.target)) return null;
  const edges = value.edges.slice(0, MOST_EDGES);
  const slowest = value.edges[value.bottleneck];
  return <Card name={`Agents (${value.agents.length})`}><Graph graph={value} slowest={slowest} />
    <div class="wide"><table aria-label="requests between agents"><thead><tr><th scope="col">Asks</th><th scope="col">Is asked</th><th scope="col">How</th><th scope="col" class="right">Requests</th><th scope="col" class="right">Failed</th><th scope="col" class="right">Waited</th><th scope="col">Example</th></tr></thead>
      <tbody>{edges.map((one: any, at: number) => <tr key={at}><th scope="row" class="long">{brief(one.source)}</th><td class="long">{brief(one.target)}{one === slowest && <> <span class="bad" title="the agent that took most time itself">bottleneck</span></>}</td><td>{one.channel}</td>
        <td class="right">{one.requests}{one.unanswered > 0 && <span class="odd"> {one.unanswered} without answer</span>}</td><td class={`right ${one.failed ? "bad" : ""}`} title={brief(one.failures.join("; "), 300)}>{one.failed || ""}</td><td class="right">{one.waited_ns > 0 ? took(one.waited_ns) : ""}</td><td><Example run={run.name} step={Number(one.example.slice(value.runs[0].length + 1))} /></td></tr>)}</tbody></table></div>
    {value.edges.length > MOST_EDGES && <p class="note">{value.edges.length - MOST_EDGES} more: playhead agents</p>}</Card>;
}

/** The first request of an edge. */
function Example({ run, step }: { run: string; step: number }) {
  return step ? <a href={link({ view: "run", run, step })}>step {step}</a> : <span class="quiet">none</span>;
}

/** The picture: one edge for each pair of agents, over all channels. */
function Graph({ graph, slowest }: { graph: any; slowest: any }) {
  const names: string[] = graph.agents.slice(0, MOST_NODES);
  const pairs = new Map<string, DrawnEdge & { failed: number }>();
  for (const one of graph.edges) {
    if (one.source === one.target || !names.includes(one.source) || !names.includes(one.target)) continue;
    const key = `${one.source}\u0001${one.target}`;
    const { count = 0, failed = 0, kind = "" } = pairs.get(key) ?? {};
    const sum = { count: count + one.requests, failed: failed + one.failed, kind: one === slowest ? "slow" : kind };
    pairs.set(key, { ...sum, source: one.source, target: one.target, title: `${brief(one.source, 60)} → ${brief(one.target, 60)}: ${sum.count} requests, ${sum.failed} failed` });
  }
  const nodes = names.map((label): DrawnNode => {
    const asked = graph.edges.filter((one: any) => one.target === label);
    const sum = (field: string) => asked.reduce((before: number, one: any) => before + one[field], 0);
    const [requests, own] = [sum("requests"), sum("own_ns")];
    const slow = slowest?.target === label;
    const small = [requests && `${requests}×`, own && `${took(own)} itself`, slow && "bottleneck"].filter(Boolean).join(", ");
    return { label, kind: slow ? "agent slow" : "agent", title: `${brief(label)}: ${small || "is not asked"}`, small, failed: requests ? sum("failed") / requests : 0 };
  });
  const edges = mainEdges([...pairs.values()], 0).slice(0, MOST_EDGES);
  return <><Drawing name="graph of the agents" label={`${nodes.length} agents and ${edges.length} edges; the same as a table below`} nodes={nodes} edges={edges} />
    {graph.agents.length > MOST_NODES && <p class="note">{graph.agents.length - MOST_NODES} agents are left out of the picture</p>}</>;
}
