// Two to eight runs side by side: why they parted, metrics, and the steps as `playhead diff` pairs them; or two groups.
import { ArrowLeftRight, Plus } from "lucide-react";
import { go, here, link, move } from "../address.ts";
import { ask } from "../api.ts";
import { useEffect, useState } from "preact/hooks";
import { Empty, useAsked, Waiting } from "../parts.tsx";
import { FIRST_ROWS, pathOf } from "../questions.ts";
import { wordDiff } from "../word_difference.ts";
import { age, brief, cost, shown, took } from "../words.ts";
import { Groups } from "./groups.tsx";
import { Kept } from "./kept.tsx";
import { Status } from "./overview.tsx";

const MOST_RUNS = 8;
const MOST_SHOWN = 300;
const MOST_OFFERED = 50;
/** What a first difference of each kind means. */
const REASONS: Record<string, string> = {
  request: "The programs sent different requests.",
  response: "The same request was answered differently.",
  error: "One of the two steps failed, or both failed differently.",
  state: "The programs reported different states.",
  removed: "Only the left run has this step.",
  added: "Only the right run has this step.",
  moved: "The same step came at another place.",
};

export function Compare() {
  const { left = "", right = "", also = "", add = "", first = "" } = here();
  const others = [right, ...also.split(" ")].filter(Boolean).slice(0, MOST_RUNS - 1);
  const { found, problem } = useDiffs(left, others);
  const pick = (name: string) => go(!left ? { view: "compare", left: name } : { view: "compare", left, right: others[0] ?? name, also: others.length ? [...others.slice(1), name].join(" ") : "" });
  if (!left) return <main>{!first && <Picker left="" taken={[]} pick={pick} />}<Groups /></main>;
  if (!others.length || add) return <main><Picker left={left} taken={[left, ...others]} pick={pick} /></main>;
  return <main><div class="bar"><b>{brief(left)}</b> and {others.map((one) => brief(one, 40)).join(", ")}
    <span class="end">{others.length === 1 && <button onClick={() => move({ left: others[0], right: left })}><ArrowLeftRight size={14} />Swap</button>}
      <button disabled={others.length >= MOST_RUNS - 1} onClick={() => go({ ...here(), add: "run" })}><Plus size={14} />Add a run</button>
      <a class="button" href={link({ view: "compare", left })}>Compare with another run</a></span></div>
    {found.length > 0 && <Metrics found={found} />}
    {found.length < others.length && <Waiting problem={problem} />}
    {others.length === 1 && found.length > 0 && <Found found={found[0]} left={left} right={others[0]} />}</main>;
}

/** Comparisons of a run with others, asked for one after the other. */
export function useDiffs(left: string, others: string[]) {
  const key = [left, ...others].join(" ");
  const [answer, setAnswer] = useState({ key: "", found: [] as any[], problem: "" });
  useEffect(() => {
    const stop = new AbortController();
    const follow = async () => {
      const found: any[] = [];
      for (const right of left ? others : []) {
        found.push(await ask("diff", { left, right }, stop.signal));
        setAnswer({ key, found: [...found], problem: "" });
      }
    };
    follow().catch((problem) => stop.signal.aborted || setAnswer((before) => ({ key, found: before.key === key ? before.found : [], problem: String(problem.message) })));
    return () => stop.abort();
  }, [key]);
  return answer.key === key ? answer : { found: [], problem: "" };
}

/** Recent runs to choose from: of the same agent, if a run is chosen already. */
function Picker({ left, taken, pick }: { left: string; taken: string[]; pick: (name: string) => void }) {
  const { agents = "" } = here();
  const of = useAsked(left ? `${pathOf(left)}/summary` : "");
  const agent = of.value?.agent ?? "";
  const same = left && agents !== "all";
  const { value, problem } = useAsked(left && !of.value ? "" : "runs", { q: same && agent ? `agent:"${agent.replaceAll('"', "")}"` : "", limit: MOST_OFFERED });
  const offered = (value?.runs ?? []).filter((run: any) => !taken.includes(run.name) && run.trace_id !== of.value?.trace_id);
  return <><h2>{left ? `Compare ${brief(left, 60)} with` : "Compare which run?"}</h2>
    {left && <div class="group">{["Same agent", "All agents"].map((name, at) => <button key={name} aria-pressed={(agents === "all") === (at === 1)} onClick={() => move({ agents: at ? "all" : "" })}>{name}</button>)}</div>}
    {!value && <Waiting problem={of.problem || problem} />}
    {value && !offered.length && <Empty title="No other run" commands={[`playhead replay ${left || "last"}`, `playhead fork ${left || "last"}`]}>{same ? "This agent has one run. Choose from all agents, or make a second run:" : "There is nothing to compare with. Make a second run:"}</Empty>}
    {offered.length > 0 && <table class="picker"><thead><tr><th scope="col">Run</th><th scope="col">Status</th><th scope="col">Input</th><th scope="col" class="wide-only">Output</th><th scope="col">Started</th><th scope="col" class="right wide-only">Duration</th><th scope="col" class="right wide-only">Steps</th><th scope="col" class="right">Cost</th></tr></thead>
      <tbody>{offered.map((run: any) => <tr key={run.trace_id}><td class="name"><button class="link pick" onClick={() => pick(run.name)}>{brief(run.name)}</button></td><td><Status status={run.status} /></td><td>{brief(run.input, 120)}</td><td class="wide-only">{brief(run.result, 120)}</td>
        <td>{age(run.started_ns)} ago</td><td class="right wide-only">{took(run.ended_ns === null ? -1 : run.ended_ns - run.started_ns)}</td><td class="right wide-only">{run.steps}</td><td class="right">{cost(run.cost_usd)}</td></tr>)}</tbody></table>}</>;
}

const FIGURES: [string, (side: any) => number | null, (value: number) => string][] = [
  ["Steps", (one) => one.steps, String],
  ["Failed steps", (one) => one.errors, String],
  ["Input tokens", (one) => one.input_tokens, (value) => value.toLocaleString("en-US")],
  ["Output tokens", (one) => one.output_tokens, (value) => value.toLocaleString("en-US")],
  ["Duration", (one) => one.duration_ns, took],
  ["Cost", (one) => one.cost_usd, cost],
];

/** Metrics of whole runs beside each other: also what a fork took from its recording counts. */
export function Metrics({ found }: { found: any[] }) {
  const sides = [found[0].left, ...found.map((one) => one.right)];
  const tools = [...new Set<string>(found.flatMap((one) => Object.keys(one.tools)))];
  const calls = (tool: string, at: number) => (at ? found[at - 1].tools[tool]?.right : found.find((one) => one.tools[tool])?.tools[tool].left) ?? 0;
  return <div class="wide" tabIndex={0}><table class="metrics"><thead><tr><td></td>{sides.map((one, at) => <th scope="col" class="right" key={at}><a href={link({ view: "run", run: one.run })}>{brief(one.run, 40)}</a></th>)}</tr></thead>
    <tbody><tr><th scope="row">Status</th>{sides.map((one, at) => <td class="right" key={at}><Status status={one.status} /></td>)}</tr>
      {FIGURES.map(([name, read, say]) => <tr key={name}><th scope="row">{name}</th>{sides.map((one, at) => <td class="right" key={at}>{read(one) === null ? <span class="quiet">unknown</span> : say(read(one) as number)}{at > 0 && <Delta from={read(sides[0])} to={read(one)} />}</td>)}</tr>)}
      {tools.map((tool) => <tr key={tool}><th scope="row">Calls of {brief(tool, 40)}</th>{sides.map((_, at) => <td class="right" key={at}>{calls(tool, at)}</td>)}</tr>)}
      <tr><th scope="row">Parts from the first</th><td class="right quiet">–</td>{found.map((one, at) => <td class="right" key={at}>{found.length > 1 ? <a href={link({ view: "compare", left: one.left.run, right: one.right.run })}>{parting(one)}</a> : parting(one)}</td>)}</tr>
      <tr><th scope="row">Recorded</th>{sides.map((one, at) => <td class="right" key={at}><Kept name={one.run} /></td>)}</tr></tbody></table></div>;
}

const parting = (one: any) => one.first_difference ? `at step ${one.first_difference.left_step ?? one.first_difference.right_step}` : one.outcome ? "in its outcome" : "nowhere";

/** By how much a figure is more or less than that of the first run. */
function Delta({ from, to }: { from: number | null; to: number | null }) {
  if (from === null || to === null || from === to) return null;
  return <span class="quiet"> {to > from ? "+" : "−"}{from ? `${Math.round((Math.abs(to - from) / from) * 100)} %` : "more"}</span>;
}

function Found({ found, left, right }: {found: any, left: string, right: string}) {
  return <><Why found={found} /><Steps found={found} left={left} right={right} /></>;
}

/** The first difference of two runs, and that of their outcomes. */
export function Why({ found }: { found: any }) {
  const first = found.first_difference;
  const same = found.same_steps.length;
  return <section class="card why"><h2>{first ? "Why they parted" : "No step differs"}</h2><div class="in">
    <p role="status">{first ? `${same} ${same === 1 ? "step is" : "steps are"} the same; first difference: step ${first.left_step ?? "none"} and ${first.right_step ?? "none"}` : `all ${same} steps are the same`}{found.outcome ? "; the outcomes differ" : "; the outcomes are the same"}</p>
    {first && <><p>{REASONS[first.kind] ?? shown(first.kind)} <b>{brief(first.label, 80)}</b> <code>{shown(first.path ?? "")}</code></p><Words left={first.left} right={first.right} /></>}
    {found.outcome && <><h3>Outcome: {brief(found.outcome.path)}</h3><Words left={found.outcome.left} right={found.outcome.right} /></>}</div></section>;
}

/** Names of steps by number. */
function useNames(run: string): Map<number, string> {
  const { value } = useAsked(`${pathOf(run)}/outline`, { limit: FIRST_ROWS * 10 });
  return new Map((value?.step ?? []).flatMap((number: number, at: number) => (number ? [[number, value.names[value.name[at]]]] : [])));
}

interface Row {
  left: number | null;
  right: number | null;
  differences: any[];
}

/** All steps in pairs; those that are the same are folded. */
function Steps({ found, left, right }: { found: any; left: string; right: string }) {
  const names = [useNames(left), useNames(right)];
  const [all, setAll] = useState(false);
  const by = Map.groupBy<string, any>(found.differences, (one: any) => `${one.left_step} ${one.right_step}`);
  const rows: Row[] = found.steps.map((one: any) => ({ ...one, differences: by.get(`${one.left} ${one.right}`) ?? [] }));
  const groups: Row[][] = [];
  for (const row of rows) {
    const before = groups.at(-1);
    if (before && !before[0].differences.length && !row.differences.length) before.push(row);
    else groups.push([row]);
  }
  const first = groups.findIndex(([one]) => one.differences.length);
  return <section class="card aligned"><h2>Steps in pairs <span class="end">{rows.some((one) => !one.differences.length) && <button onClick={() => setAll(!all)}>{all ? "Fold the same steps" : "Show the same steps"}</button>}</span></h2>
    {groups.slice(0, MOST_SHOWN).map((group, at) => !group[0].differences.length
      ? all ? group.map((one) => <div class="pair" key={`${one.left}`}><Sides row={one} names={names} /><span class="good">same</span></div>)
        : <div class="pair quiet" key={at}><span>steps {group[0].left}{group.length > 1 ? `–${group.at(-1)?.left}` : ""}</span><span class="good">same</span></div>
      : <details key={at} open={at === first} class={at === first ? "first" : ""}><summary class="pair"><Sides row={group[0]} names={names} />
          <span>{at === first && <span class="badge odd">first difference</span>} <span class="odd">{[...new Set(group[0].differences.map((one) => one.kind))].join(", ")}</span>{group[0].differences.every((one) => one.follows) ? <span class="quiet"> repeats an earlier difference</span> : ""}</span></summary>
        <div class="pair">{[group[0].left, group[0].right].map((step, side) => <span key={side}>{step !== null && <a href={link({ view: "run", run: [left, right][side], step })}>show step {step}</a>}</span>)}</div>
        {group[0].differences.map((one, place) => <div class="said" key={place}><b>{one.kind}</b> <code>{shown(one.path ?? "")}</code><Words left={one.left} right={one.right} /></div>)}</details>)}
    {groups.length > MOST_SHOWN && <p class="note">{groups.length - MOST_SHOWN} more: playhead diff</p>}</section>;
}

/** The two steps of a pair. */
function Sides({ row, names }: { row: Row; names: Map<number, string>[] }) {
  return <>{[row.left, row.right].map((step, at) => <span key={at} class={step === null ? "quiet" : ""}>{step === null ? "no step" : `${step} ${brief(names[at].get(step) ?? row.differences[0]?.label ?? "", 60)}`}</span>)}</>;
}

/** Both texts, what is gone and what is new in them marked. */
export function Words({ left, right }: {left: string, right: string}) {
  const parts = wordDiff(left, right);
  return <div class="two"><pre class="text" tabIndex={0}>{parts.map((part, at) => part.how === "gone" ? <del key={at}>{shown(part.text)}</del> : part.how === "same" && shown(part.text))}</pre>
    <pre class="text" tabIndex={0}>{parts.map((part, at) => part.how === "new" ? <ins key={at}>{shown(part.text)}</ins> : part.how === "same" && shown(part.text))}</pre></div>;
}
