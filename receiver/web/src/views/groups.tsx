// Whether two groups of runs differ in outcome, tools, failures, order, cost or time, tested as `playhead compare` does.
import { go, here, link } from "../address.ts";
import { useAsked, Waiting } from "../parts.tsx";
import { brief, cost, took } from "../words.ts";

const MOST_RUNS = 1000;
const MOST_SHOWN = 300;
const FAMILIES: [string, string][] = [["outcome", "Outcome"], ["tools", "Tools"], ["other", "Failures, order, cost and time"]];
const TONES: Record<string, string> = { difference: "bad", "too few runs": "odd", "no difference found": "good" };

/** What the runs of a comparison have in common, and what selects each group. */
export function Groups() {
  const { of = "", first = "", second = "" } = here();
  const { value: found, problem } = useAsked(first && second ? "compare" : "", { query: of, left: first, right: second, runs: MOST_RUNS });
  const sent = (event: any) => {
    event.preventDefault();
    const { of, first, second } = event.target;
    go({ view: "compare", of: of.value.trim(), first: first.value.trim(), second: second.value.trim() });
  };
  return <section class="groups" aria-label="two groups of runs"><h2>Compare two groups of runs</h2>
    <form class="bar" onSubmit={sent}>
      <input type="search" name="of" aria-label="query for both groups" value={of} placeholder="agent:refund since:7d" />
      <label>first <input name="first" required value={first} placeholder="version:7" /></label>
      <label>second <input name="second" required value={second} placeholder="version:8" /></label>
      <button name="compare-groups">Compare</button></form>
    {first && second && !found && <Waiting problem={problem} />}
    {found && <><p role="status"><b class={TONES[found.verdict]}>{found.verdict}</b>: <Group query={`${of} ${first}`} name={first} runs={found.left_runs} /> and <Group query={`${of} ${second}`} name={second} runs={found.right_runs} />{found.runs_needed > 0 && <span class="quiet">. {power(found)}</span>}</p>
      {FAMILIES.map(([family, title]) => <Measures key={family} title={title} of={found.measures.filter((one: any) => one.family === family)} names={[first, second]} />)}</>}</section>;
}

function Group({ query, name, runs }: { query: string; name: string; runs: number }) {
  return <><a href={link({ view: "runs", q: query.trim() })}>{brief(name, 60)}</a> ({runs}{runs === MOST_RUNS ? ", the latest" : ""} {runs === 1 ? "run" : "runs"})</>;
}

/** Which difference these runs are enough to see. */
const power = (found: any) => found.verdict === "too few runs"
  ? `${found.runs_needed} runs of each are needed to see a difference of 10 points`
  : `A difference of ${Math.round(found.detectable * 100)} points in success would be seen in 4 of 5 comparisons`;

const FIGURES: Record<string, (value: number) => string> = {
  share: (value) => `${Math.round(value * 100)} %`,
  ns: took,
  usd: cost,
  count: (value) => `${Math.round(value)}`,
};

const signed = (value: number, digits: number) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(digits)}`;

/** The measures of a family; those that differ stand first. */
function Measures({ title, of, names }: { title: string; of: any[]; names: string[] }) {
  if (!of.length) return null;
  const effect = (one: any) => (one.unit === "share" ? `${signed(one.effect * 100, 0)}\u00a0points` : signed(one.effect, 2));
  const value = (one: any, figure: number, p95: number | null) => <>{FIGURES[one.unit](figure)}{p95 !== null && <span class="quiet"> p95{"\u00a0"}{FIGURES[one.unit](p95).replaceAll(" ", "\u00a0")}</span>}</>;
  return <><h3>{title}</h3><div class="wide" tabIndex={0}><table aria-label={title.toLowerCase()}><thead><tr><th scope="col">Measure</th><th scope="col" class="right">{brief(names[0], 30)}</th><th scope="col" class="right">{brief(names[1], 30)}</th><th scope="col" class="right">Effect</th><th scope="col" class="right">p</th><th scope="col">Differs</th></tr></thead>
    <tbody>{of.slice(0, MOST_SHOWN).map((one) => <tr key={one.name} class={one.differs ? "" : "quiet"}><th scope="row">{brief(one.name, 100)}</th><td class="right">{value(one, one.left, one.left_p95)}</td><td class="right">{value(one, one.right, one.right_p95)}</td><td class="right">{effect(one)}</td><td class="right">{one.p < 0.001 ? "<\u00a00.001" : one.p.toFixed(3)}</td><td class="bad">{one.differs ? "yes" : ""}</td></tr>)}</tbody></table></div>
    {of.length > MOST_SHOWN && <p class="note">{of.length - MOST_SHOWN} more: playhead compare --all</p>}</>;
}
