// Whether the runs of a query did what a workflow says: a shipped one, or the text of a file.
import { useState } from "preact/hooks";
import { link } from "../address.ts";
import { order } from "../api.ts";
import { useAsked } from "../parts.tsx";
import { brief, shown } from "../words.ts";

const MOST_SHOWN = 200;
const TONES: Record<string, string> = { yes: "good", no: "bad", unknown: "odd" };

/** @param query of the runs @param runs the most that are read */
export function Conformance({ query, runs }: { query: string; runs: number }) {
  const [open, setOpen] = useState(false);
  return <details class="conformance" onToggle={(event: any) => setOpen(event.currentTarget.open)}><summary>Check against a workflow</summary>{open && <Check key={query} query={query} runs={runs} />}</details>;
}

function Check({ query, runs }: { query: string; runs: number }) {
  const shipped = useAsked("workflows").value?.workflows ?? [];
  const [file, setFile] = useState("");
  const [{ report, problem, busy }, setAnswer] = useState<{ report: any; problem: string; busy: boolean }>({ report: null, problem: "", busy: false });
  const sent = (event: any) => {
    event.preventDefault();
    setAnswer({ report, problem: "", busy: true });
    order("POST", `conform?${new URLSearchParams({ query, runs: `${runs}` })}`, { file }).then(
      (report) => setAnswer({ report, problem: "", busy: false }),
      (refused) => setAnswer({ report: null, problem: refused.message, busy: false }),
    );
  };
  return <form class="note-form" onSubmit={sent}>
    <div class="bar"><label>workflow <select name="shipped" onChange={(event: any) => setFile(shipped.find((one: any) => one.name === event.target.value)?.file ?? "")}><option value="">of your own</option>{shipped.map((one: any) => <option key={one.name} title={one.description}>{one.name}</option>)}</select></label>
      <button name="check-workflow" disabled={!file || busy}>Check</button></div>
    <textarea name="workflow" aria-label="workflow file" rows={8} spellcheck={false} value={file} placeholder={'name = "refund"\n\n[[state]]\nname = "planning"\nminimum_s = 1'} onInput={(event: any) => setFile(event.target.value)}></textarea>
    {problem && <p class="problem" role="alert">{shown(problem)}</p>}
    {report && <Report report={report} />}</form>;
}

function Report({ report }: { report: any }) {
  const rows = report.results.slice(0, MOST_SHOWN);
  return <><p role="status"><b class={TONES[report.conforms]}>{report.conforms}</b> {report.conforming} of {report.runs} runs conform to {brief(report.workflow, 60)}, {Math.round(report.completeness * 100)} % complete</p>
    <div class="wide"><table aria-label="conformance"><thead><tr><th scope="col">Run</th><th scope="col">Conforms</th><th scope="col" class="right">Complete</th><th scope="col">Missing</th><th scope="col">Not expected</th><th scope="col">Rules and bounds</th></tr></thead>
      <tbody>{rows.map((one: any) => <tr key={one.run}><th scope="row"><a href={link({ view: "run", run: one.run })}>{brief(one.run, 60)}</a></th><td class={TONES[one.conforms]}>{one.conforms}</td><td class="right">{Math.round(one.completeness * 100)} %</td><td>{brief(one.missing.join(", "), 300)}</td><td>{brief(one.unexpected.join(", "), 300)}</td>
        <td>{brief([...one.broken_rules, ...one.exceeded.map((bound: any) => `${bound.name} ${bound.actual}, at most ${bound.allowed}`), ...(one.is_success ? [] : ["no success"]), ...one.unknown].join("; "), 300)}</td></tr>)}</tbody></table></div>
    {report.results.length > MOST_SHOWN && <p class="note">{report.results.length - MOST_SHOWN} more: playhead conform</p>}</>;
}
