// What the time of a run went into: a bar with a legend, the longest steps, and the critical path.
import { link } from "../address.ts";
import { stepOf } from "../findings.ts";
import type { Outline } from "../outline.ts";
import { Card, useAsked, Waiting } from "../parts.tsx";
import { pathOf } from "../questions.ts";
import { brief, cost, took } from "../words.ts";

const PARTS: [string, string][] = [["model", "models"], ["tool", "tools"], ["retry", "retries"], ["waiting", "waiting for a person"], ["code", "own code"]];
const NAMES: Record<string, string> = { model: "model", tool: "tool", waiting: "waiting for a person" };
const MOST_STEPS = 10;
const MOST_PLACES = 30;

export function TimeSplit({ outline }: { outline: Outline }) {
  const run = outline.run;
  const { value, problem } = useAsked(outline.whole ? `${pathOf(run.trace_id)}/time` : "", {}, run.steps);
  if (!value) return <Card name="Time"><Waiting problem={problem} /></Card>;
  const whole = Math.max(1, value.duration_ns);
  const parts = PARTS.map(([part, words]) => ({ part, words, ns: value[`${part}_ns`] })).filter((one) => one.ns > 0);
  const time = (one: any) => one.time_ns + one.retry_ns;
  const longest = value.steps.filter((one: any) => time(one) > 0).sort((one: any, other: any) => time(other) - time(one)).slice(0, MOST_STEPS);
  const path = new Set<string>(value.critical_path);
  return <Card name="Time">
    <div class="states" aria-hidden="true">{parts.map(({ part, ns }) => <span key={part} class={`time-${part}`} style={{ width: `${(ns / whole) * 100}%` }}></span>)}</div>
    <ul class="legend" aria-label="parts of the time">{parts.map(({ part, words, ns }) => <li key={part}><span class={`dot time-${part}`} aria-hidden="true"></span><b>{words}</b> <span class="quiet">{took(ns)}, {Math.round((ns / whole) * 100)} %</span></li>)}</ul>
    <p class="quiet">{took(value.duration_ns)} in all{value.cost_usd !== null && `, ${cost(value.cost_usd)}`}; the parts of concurrent calls are shared equally</p>
    {longest.length > 0 && <div class="wide"><table aria-label="longest steps"><thead><tr><th scope="col">Step</th><th scope="col">Longest steps</th><th scope="col" class="right">Time</th><th scope="col" class="right">Retries</th><th scope="col" class="right">Cost</th></tr></thead>
      <tbody>{longest.map((one: any, at: number) => <tr key={at}><td>{one.place && <Place run={run.name} place={one.place} />}</td><td><b>{brief(one.name, 80)}</b> <span class="quiet">{[NAMES[one.part], brief(one.agent, 40)].filter(Boolean).join(", ")}</span>{path.has(one.place) && <> <span class="source quiet">critical path</span></>}</td>
        <td class="right">{took(one.time_ns)}</td><td class="right">{one.retry_ns > 0 && <span class="bad">{took(one.retry_ns)}</span>}</td><td class="right">{cost(one.cost_usd)}</td></tr>)}</tbody></table></div>}
    {path.size > 0 && <p class="path"><b>Critical path</b> <span class="quiet">the end of the run waited for</span> {value.critical_path.slice(0, MOST_PLACES).map((place: string, at: number) => <span key={place}>{at > 0 && " → "}<Place run={run.name} place={place} /></span>)}{value.critical_path.length > MOST_PLACES && <span class="quiet"> and {value.critical_path.length - MOST_PLACES} more steps</span>}</p>}
  </Card>;
}

/** A step as a link. */
function Place({ run, place }: { run: string; place: string }) {
  return <a href={link({ view: "run", run, step: stepOf(place) })}>{place}</a>;
}
