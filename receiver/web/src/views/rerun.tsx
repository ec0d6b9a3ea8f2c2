// A replay or fork under way: what it says, its report, the run that it makes.
import { go, here, link, move } from "../address.ts";
import { order } from "../api.ts";
import { useEffect, useState } from "preact/hooks";
import { Text, Waiting } from "../parts.tsx";
import { FIDELITY } from "../reruns.ts";
import { brief, shown, took } from "../words.ts";
import { Metrics, useDiffs, Why, Words } from "./compare.tsx";

const MOST_SHOWN = 100;
const A_SECOND_MS = 1000;

/** Beside the name of a run. */
export function Rerun({ found, run }: {found: any, run: string}) {
  const [problem, setProblem] = useState("");
  const value = found.value;
  const place = here();
  useEffect(() => {
    // Who has forked a run looks at the new one, as soon as it is there.
    if (value?.kind === "fork" && value.made && value.run === run) {
      move({ rerun: "" }); // so that the way back does not lead here again
      go({ view: "run", run: value.made, step: "end", rerun: value.id });
    }
  }, [value?.made]);
  if (found.problem) return <section class="rerun" aria-label="rerun"><p class="problem" role="alert">{shown(found.problem)} <button onClick={() => move({ rerun: "" })}>Close</button></p></section>;
  if (!value) return null;
  const running = value.state === "running";
  const cancel = () => order("DELETE", `reruns/${value.id}`).catch((refused) => setProblem(refused.message));
  const of = `${value.run}${value.step ? `:${value.step}` : ""}`;
  return <section class="rerun" aria-label="rerun">
    <div class="bar"><b>{value.kind} of <a href={link({ view: "run", run: value.run, step: value.step ?? "" })}>{brief(of)}</a></b>
      <span role="status" class={running ? "odd" : value.exit_code ? "bad" : "good"}>{running ? "running" : value.state === "cancelled" ? "cancelled" : (value.report?.verdict ?? `ended with ${value.exit_code}`)}</span>
      {value.ended_ns !== null && <span class="quiet">{took(value.ended_ns - value.started_ns)}</span>}
      {value.report && <Counts report={value.report} />}
      {value.made && <><a href={link({ view: "run", run: value.made, step: "end", rerun: value.id })}>{brief(value.made)}</a> <a href={link({ view: "compare", left: value.run, right: value.made })}>Compare</a></>}
      {running && <button name="cancel" onClick={cancel}>Cancel</button>}
      {!running && <button onClick={() => move({ rerun: "" })}>Close</button>}</div>
    {running && <Progress value={value} />}
    {problem && <p class="problem">{shown(problem)}</p>}
    {value.problem && <p class="problem" role="alert">{shown([value.problem.what, value.problem.cause, value.problem.hint].filter(Boolean).join(": "))}</p>}
    <details open={place.more === "report"} onToggle={(event: any) => event.currentTarget.open !== (place.more === "report") && move({ more: event.currentTarget.open ? "report" : "" })}>
      <summary>{value.report ? "report" : "output"}</summary>
      {value.report && <Report report={value.report} run={value.run} />}
      {value.said && <Text text={value.said} />}{value.printed && <Text text={value.printed} />}
      {!value.report && !value.said && !value.printed && <p class="note">nothing yet</p>}</details>
    {!running && value.made && <SideBySide left={value.run} right={value.made} />}
  </section>;
}

/** How long a rerun takes by now, and what it said last. */
function Progress({ value }: { value: any }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), A_SECOND_MS);
    return () => clearInterval(timer);
  }, []);
  const last = value.said.trimEnd().split("\n").at(-1);
  return <p class="bar"><progress aria-label={`${value.kind} is running`}></progress><span class="quiet">{took(Math.max(0, now * 1e6 - value.started_ns))} {brief(last, 120)}</span></p>;
}

/** A run and its fork, when it has ended. */
function SideBySide({ left, right }: { left: string; right: string }) {
  const { found, problem } = useDiffs(left, [right]);
  return <details open class="side-by-side"><summary>Side by side</summary>
    {found.length ? <><Metrics found={found} /><Why found={found[0]} /></> : <Waiting problem={problem} />}</details>;
}

function Counts({ report }: {report: any}) {
  return <span>{Object.entries(report.fidelity).filter(([, count]) => count).map(([name, count]) => <span key={name} class={`tag ${FIDELITY[name]?.[1] ?? ""}`}>{FIDELITY[name]?.[0]} {name} {count}</span>)}</span>;
}

function Report({ report, run }: {report: any, run: string}) {
  const outputs = Object.entries<any>(report.outputs);
  return <div>
    {report.divergences.slice(0, MOST_SHOWN).map((one: any, at: number) => <section class="said" key={at}>
      <b>{one.step === null ? (one.after_step ? "before step 1" : "outside any step") : <>{one.after_step ? "after " : ""}<a href={link({ ...here(), run, view: "run", step: one.step, span: "" })}>step {one.step}</a></>}</b> {shown(one.what)} <span class="quiet">{shown(one.path ?? "")} {shown(one.detail ?? "")}</span>
      {one.tape !== null && <Words left={one.tape} right={one.now} />}</section>)}
    {report.divergences.length > MOST_SHOWN && <p class="note">{report.divergences.length - MOST_SHOWN} more</p>}
    <p>{outputs.map(([name, one]) => <span key={name} class={one.identical ? "good" : "bad"}>{brief(name)} {one.identical ? "same" : "differs"} </span>)}</p>
    {report.notes.map((one: string) => <p class="note" key={one}>{shown(one)}</p>)}
    {Object.entries(report.not_kept).map(([name, level]) => <p class="note" key={name}>{brief(name)} is not recorded, so it is not compared (level {level} records it)</p>)}</div>;
}
