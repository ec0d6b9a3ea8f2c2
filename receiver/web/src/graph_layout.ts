// Where the nodes and edges of a flow are drawn. The library that lays them out is loaded when it is needed.

export interface Placed {
  width: number;
  height: number;
  nodes: { x: number; y: number; width: number; height: number; node: any }[];
  edges: { path: string; x: number; y: number; edge: any }[];
}

export const NODE = { width: 168, height: 46 };
const GAP = 26;
const LAYERS = 58;

/** The most frequent edges, so that every node keeps a way from the start. @param least share of the most frequent edge, from 0 to 1 */
export function mainEdges(edges: any[], least: number): any[] {
  const most = Math.max(1, ...edges.map((one) => one.count));
  const reached = new Set<string>();
  return [...edges].sort((one, other) => other.count - one.count).filter((one) => {
    const kept = one.count >= most * least || !reached.has(one.target);
    if (kept) reached.add(one.target);
    return kept;
  });
}

/** A smooth line through points. */
export function lineThrough(points: { x: number; y: number }[]) {
  const [first, ...rest] = points.map(({ x, y }) => [Math.round(x * 10) / 10, Math.round(y * 10) / 10]);
  const parts = [`M${first}`];
  for (let at = 0; at < rest.length - 1; at++) {
    const [x, y] = rest[at];
    const [next, below] = rest[at + 1];
    parts.push(at === rest.length - 2 ? `Q${x},${y} ${next},${below}` : `Q${x},${y} ${(x + next) / 2},${(y + below) / 2}`);
  }
  return rest.length === 1 ? `${parts[0]}L${rest[0]}` : parts.join("");
}

/** Lay out a graph from above to below. @param graph nodes with a label, and edges with a count between them */
export async function layOut(graph: { nodes: any[]; edges: any[] }): Promise<Placed> {
  const { Graph, layout } = await import("@dagrejs/dagre");
  const made = new Graph({ multigraph: false });
  made.setGraph({ rankdir: "TB", nodesep: GAP, ranksep: LAYERS, marginx: 12, marginy: 12 });
  made.setDefaultEdgeLabel(() => ({}));
  // Numbers as names: the library keys plain objects by them, and a label may be `__proto__`.
  const names = new Map(graph.nodes.map((node, at) => [node.label, String(at)]));
  for (const node of graph.nodes) made.setNode(names.get(node.label)!, { ...NODE, node });
  for (const edge of graph.edges) if (edge.source !== edge.target) made.setEdge(names.get(edge.source)!, names.get(edge.target)!, { width: 44, height: 16, labelpos: "c", weight: Math.log2(1 + edge.count), edge });
  layout(made);
  const { width = 0, height = 0 } = made.graph() as any;
  return {
    width,
    height,
    nodes: made.nodes().map((id: string) => made.node(id) as any),
    edges: made.edges().map((id: any) => made.edge(id) as any).map(({ points, x, y, edge }: any) => ({ path: lineThrough(points), x, y, edge })),
  };
}
