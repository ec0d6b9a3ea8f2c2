// Two runs side by side, as `playhead diff` pairs them.
import { go, here, link } from "../address.ts";
import { useAsked, Waiting } from "../parts.tsx";
import { wordDiff } from "../word_difference.ts";
import { brief, cost, shown, took } from "../words.ts";
import { Kept } from "./kept.tsx";

const MOST_SHOWN = 300;

export function Compare() {
  const { left = "", right = "" } = here();
  const { value, problem } = useAsked(left && right ? "diff" : "", { left, right });
  const ask = (event: any) => {
    event.preventDefault();
    go({ view: "compare", left: event.target.left.value, right: event.target.right.value });
  };
  return <main><form class="bar" onSubmit={ask}><input name="left" aria-label="left run" value={left} placeholder="last-1" /><input name="right" aria-label="right run" value={right} placeholder="last" /><button>compare</button></form>
    {left && right && (value ? <Found found={value} left={left} right={right} /> : <Waiting problem={problem} />)}</main>;
}

function Found({ found, left, right }: {found: any, left: string, right: string}) {
  const first = found.first_difference;
  const sides = [found.left, found.right];
  return <div>
    <p role="status">{first ? `${found.same_steps.length} steps are the same; first difference: step ${first.left_step ?? "none"} and ${first.right_step ?? "none"}` : "no step differs"}{found.outcome ? "; the outcomes differ" : ""}</p>
    <table><thead><tr><th>Run</th><th>Status</th><th class="right">Steps</th><th class="right">Failed</th><th class="right">Tokens</th><th class="right">Duration</th><th class="right">Cost</th><th>Recorded</th></tr></thead><tbody>
    {sides.map((one, at) => <tr key={at}><td><a href={link({ view: "run", run: one.run })}>{brief(one.run)}</a></td><td>{one.status}</td><td class="right">{one.steps}</td><td class="right">{one.errors}</td>
      <td class="right">{one.input_tokens}→{one.output_tokens}</td><td class="right">{took(one.duration_ns ?? -1)}</td><td class="right">{cost(one.cost_usd)}</td><td><Kept name={one.run} /></td></tr>)}</tbody></table>
    {found.differences.slice(0, MOST_SHOWN).map((one: any, at: number) => <Difference key={at} one={one} left={left} right={right} />)}
    {found.differences.length > MOST_SHOWN && <p class="note">{found.differences.length - MOST_SHOWN} more: playhead diff</p>}
    {found.outcome && <section class="said"><h2>outcome: {brief(found.outcome.path)}</h2><Words left={found.outcome.left} right={found.outcome.right} /></section>}
  </div>;
}

function Difference({ one, left, right }: {one: any, left: string, right: string}) {
  const step = (run: string, number: number | null) =>
    number === null ? <span class="quiet">no step</span> : <a href={link({ view: "run", run, step: number })}>step {number}</a>;
  return <section class="said"><h2>{one.kind} {brief(one.label)} <span class="quiet">{brief(one.path ?? "")}{one.follows ? ", repeats an earlier difference" : ""}</span></h2>
    <p>{step(left, one.left_step)} {" and "} {step(right, one.right_step)}</p><Words left={one.left} right={one.right} /></section>;
}

/** Both texts, what is gone and what is new in them marked. */
export function Words({ left, right }: {left: string, right: string}) {
  const parts = wordDiff(left, right);
  return <div class="two"><pre class="text" tabIndex={0}>{parts.map((part, at) => part.how === "gone" ? <del key={at}>{shown(part.text)}</del> : part.how === "same" && shown(part.text))}</pre>
    <pre class="text" tabIndex={0}>{parts.map((part, at) => part.how === "new" ? <ins key={at}>{shown(part.text)}</ins> : part.how === "same" && shown(part.text))}</pre></div>;
}
