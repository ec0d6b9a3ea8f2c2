// What is done to runs: to the picked ones, else to the one under the cursor. Marks can be undone; deletion asks first.
import { Columns2, Download, Flag, FlaskConical, Lock, Trash2, Undo2, X } from "lucide-react";
import { useState } from "preact/hooks";
import { go } from "../address.ts";
import { askText, order } from "../api.ts";
import { pathOf } from "../questions.ts";
import { brief, shown } from "../words.ts";

const MOST_COMPARED = 8;
/** Marks, with what a button says of each, and what was done when it was pressed. */
const MARKS: [string, string, any, string][] = [["flagged", "Flag", Flag, "Flagged"], ["held", "Keep forever", Lock, "Kept"], ["test", "Save as test", FlaskConical, "Saved as tests"]];

interface Done {
  text: string;
  undo?: () => Promise<unknown>;
}

const amount = (runs: any[]) => `${runs.length} ${runs.length === 1 ? "run" : "runs"}`;

/** @param pick empty: no run is picked @param changed the runs are asked for again */
export function Picked({ runs, picked, drop, changed }: { runs: any[]; picked: boolean; drop: () => void; changed: () => void }) {
  const [sure, setSure] = useState(false);
  const [done, setDone] = useState<Done | null>(null);
  const [problem, setProblem] = useState("");
  const each = async (some: any[], what: (run: any) => Promise<any>, then: Done | null) => {
    const refused: string[] = [];
    for (const run of some) await what(run).catch((problem) => refused.push(`${run.name}: ${problem.message}`));
    setProblem(refused.join("; "));
    setDone(refused.length < some.length ? then : null);
    setSure(false);
    changed();
  };
  const mark = (name: string, did: string) => {
    const on = !runs.every((run) => run.marks.includes(name));
    const some = runs.filter((run) => run.marks.includes(name) !== on);
    const set = (to: boolean) => (run: any) => order(to ? "PUT" : "DELETE", `${pathOf(run.trace_id)}/marks/${name}`);
    each(some, set(on), { text: on ? `${did}: ${amount(some)}` : `Removed the mark of ${amount(some)}`, undo: () => each(some, set(!on), null) });
  };
  const remove = () => {
    if (!sure) return setSure(true);
    each(runs, (run) => order("DELETE", pathOf(run.trace_id)), { text: `Deleted ${amount(runs)}` }).then(drop);
  };
  return <><span class="end actions">{picked ? <b>{amount(runs)} picked <button class="link" aria-label="pick none" onClick={drop}><X size={13} /></button></b> : <span class="quiet">{shown(runs[0]?.name ?? "")}</span>}
      {picked && <button class="main" name="compare" disabled={runs.length < 2 || runs.length > MOST_COMPARED} title={`two to ${MOST_COMPARED} runs`} onClick={() => go({ view: "compare", left: runs[0].name, right: runs[1].name, also: runs.slice(2).map((run) => run.name).join(" ") })}><Columns2 size={14} />{runs.length < 2 ? "Pick a second run to compare" : runs.length > 2 ? `Compare ${runs.length} runs` : `Compare ${brief(runs[0].name, 30)} with ${brief(runs[1].name, 30)}`}</button>}
      {MARKS.map(([name, label, Icon, did]) => <button key={name} name={name} aria-pressed={runs.length > 0 && runs.every((run) => run.marks.includes(name))} onClick={() => mark(name, did)}><Icon size={14} />{label}</button>)}
      <button name="export" onClick={() => exported(runs).catch((refused) => setProblem(refused.message))}><Download size={14} />Export</button>
      <button name="delete" class={sure ? "bad" : ""} onBlur={() => setSure(false)} onClick={remove}><Trash2 size={14} />{!sure ? "Delete" : picked ? `Delete ${amount(runs)} for good` : "Delete for good"}</button></span>
    {(done || problem) && <p class="done" role="status">{done && <>{done.text} {done.undo && <button name="undo" onClick={done.undo}><Undo2 size={13} />Undo</button>}</>}{problem && <span class="problem">{shown(problem)}</span>}</p>}</>;
}

/** Save runs as one file of OTLP JSON lines, for `playhead import`. */
export async function exported(runs: any[]) {
  const texts = [];
  for (const run of runs) texts.push(await askText(`v1/${pathOf(run.trace_id)}/export`));
  const url = URL.createObjectURL(new Blob(texts, { type: "application/jsonl" }));
  Object.assign(document.createElement("a"), { href: url, download: `${runs.length === 1 ? runs[0].name.replace(/[^\w.-]/g, "_") : "runs"}.jsonl` }).click();
  setTimeout(() => URL.revokeObjectURL(url));
}
