// A graph, drawn from above to below. It is a picture: a table next to it has the same, with links.
import { useEffect, useState } from "preact/hooks";
import { layOut, type Placed } from "../graph_layout.ts";
import { brief } from "../words.ts";

export interface DrawnNode {
  label: string;
  kind: string;
  title: string;
  small: string;
  /** Share of failures, from 0 to 1. */
  failed: number;
}

export interface DrawnEdge {
  source: string;
  target: string;
  count: number;
  kind: string;
  title: string;
}

const ROUND = ["start", "end"];
/** An edge is thick if it counts at least so many: of a graph that has only single requests, none is. */
const FEW = 5;

/** @param name of the region that scrolls @param label what the picture shows */
export function Drawing({ name, label, nodes, edges }: { name: string; label: string; nodes: DrawnNode[]; edges: DrawnEdge[] }) {
  const [placed, setPlaced] = useState<Placed | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    let left = false;
    layOut({ nodes, edges }).then((found) => left || setPlaced(found), () => left || setProblem("the graph could not be drawn: its table is below"));
    return () => { left = true; };
  }, [JSON.stringify([nodes, edges])]);
  const most = Math.max(FEW, ...edges.map((one) => one.count));
  return <div class="graph" tabIndex={0} role="region" aria-label={name}>
    {problem && <p class="problem">{problem}</p>}
    {placed && <svg class="flow-graph" role="img" aria-label={label} width={placed.width} height={placed.height} viewBox={`0 0 ${placed.width} ${placed.height}`}>
      <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0L8,4L0,8z" class="tip" /></marker></defs>
      {placed.edges.map(({ path, x, y, edge }) => <g key={`${edge.source}\u0001${edge.target}`} class={`edge ${edge.kind}`}><title>{edge.title}</title>
        <path d={path} stroke-width={1 + 5 * (edge.count / most)} marker-end="url(#arrow)" /><text x={x} y={y + 4}>{edge.count}</text></g>)}
      {placed.nodes.map(({ x, y, width, height, node }) => <g key={node.label} class={`node ${node.kind}`} transform={`translate(${x - width / 2} ${y - height / 2})`}><title>{node.title}</title>
        <rect width={width} height={height} rx={ROUND.includes(node.kind) ? height / 2 : 7} />
        {node.failed > 0 && <rect class="failed" y={height - 4} width={Math.max(4, width * node.failed)} height={4} rx={2} />}
        <text x={width / 2} y={19} class="name">{brief(node.label, 20)}</text><text x={width / 2} y={35} class="small">{node.small}</text></g>)}</svg>}</div>;
}
