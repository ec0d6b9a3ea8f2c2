// A run executed again: replayed as it was, or forked from a step with a change. Here, or as commands.
import { here, move } from "../address.ts";
import { order, part } from "../api.ts";
import { editOf, forkCommand, replayCommand } from "../commands.ts";
import { useLayoutEffect, useState } from "preact/hooks";
import { useAsked } from "../parts.tsx";
import { changedLines } from "../word_difference.ts";
import { shown } from "../words.ts";
import { Words } from "./compare.tsx";
import { RequestForm } from "./request_form.tsx";

const EDITED = ["request.model", "request.temperature", "request.messages[-1].content", "response.choices[0].message.content", "tool_result"];
const MOST_COMPARED = 40_000;
/** Ways to edit a request, as addresses name them. */
const WAYS: [string, string][] = [["form", "Form"], ["request", "JSON"], ["", "One value"]];

/** Order a replay, and go to where it is followed. */
export function startReplay(run: string): Promise<void> {
  return order("POST", `runs/${part(run)}/replay`, {}).then((made) => move({ rerun: made.id }));
}

export function Again({ run, step }: {run: string, step: number}) {
  const [edit, setEdit] = useState({ path: "", value: "" });
  const [request, setRequest] = useState<string | null>(null);
  const [way, setWay] = useState({ offline: false, unanswered: "ask" });
  const [said, setSaid] = useState("");
  const may = useAsked("reruns").value;
  const place = here();
  const wanted = step > 0 && (place.edit === "request" || place.edit === "form");
  const recorded = useAsked(wanted && may?.allowed ? `runs/${part(run)}/steps/${step}/request` : "");
  const before = recorded.value?.text;
  const now = request ?? before;
  useLayoutEffect(() => setRequest(null), [run, step]);
  const change = (event: any) => {
    const { name, value } = event.currentTarget;
    setEdit((before) => ({ ...before, [name]: value }));
  };
  const failed = (problem: Error) => setSaid(problem.message);
  const fork = (event: any) => {
    event.preventDefault();
    const one = editOf(edit.path, edit.value);
    order("POST", `runs/${part(run)}/fork`, {
      step: step || null,
      edits: one && !wanted ? [one] : [],
      request: wanted && now !== before ? now : null,
      ...way,
    }).then((made) => { setSaid(""); move({ rerun: made.id }); }, failed);
  };
  return <div>
    {may && !may.allowed && <p class="note">{shown(may.why_not)}. Run one of these commands on the agent's machine.</p>}
    {said && <p class="problem" role="alert">{shown(said)}</p>}
    {place.act !== "fork" && <><h3>Replay</h3><p class="note">All requests are answered from the recording; nothing is sent.</p>
      <Command text={replayCommand(run, step)} />
      {may?.allowed && <button name="replay" class="main" onClick={() => startReplay(run).then(() => setSaid(""), failed)}>Replay here</button>}</>}
    {place.act !== "replay" && <form onSubmit={fork}><h3>Fork</h3>
      <p class="note">{step ? `Replays up to step ${step}, then continues live, as a new run.` : "This span is not a step: the run is replayed as far as the program matches, then continues live."}</p>
      {step > 0 && may?.allowed && <div class="group" role="group" aria-label="how to edit the request">{WAYS.map(([edit, name]) => <button key={edit} type="button" name={`edit-${edit || "path"}`} aria-pressed={(place.edit ?? "") === edit} onClick={() => move({ edit })}>{name}</button>)}</div>}
      {step > 0 && !wanted && <><div class="bar"><input name="path" list="edited" aria-label="path to edit" placeholder="request.model" value={edit.path} onInput={change} />
        <input name="value" aria-label="new value" placeholder="new value" value={edit.value} onInput={change} /></div>
        <datalist id="edited">{EDITED.map((one) => <option key={one} value={one}></option>)}</datalist></>}
      {wanted && recorded.problem && <p class="note">{shown(recorded.problem)}</p>}
      {wanted && may?.allowed && before !== undefined && <>{place.edit === "form" ? <RequestForm text={now} change={setRequest} /> : <textarea name="request" aria-label="edited request" rows={14} spellcheck={false} value={now} onInput={(event: any) => setRequest(event.target.value)}></textarea>}
        <Edited before={before} now={now} /></>}
      <p><label><input type="checkbox" checked={way.offline} onChange={(event: any) => setWay({ ...way, offline: event.target.checked })} /> offline: refuse live requests and effects</label></p>
      {may?.allowed && <p><label>if a write was sent but its result is unknown: <select value={way.unanswered} onChange={(event: any) => setWay({ ...way, unanswered: event.target.value })}>
        <option value="ask">stop</option><option value="resend">send it again</option><option value="skip">skip it</option></select></label></p>}
      <Command text={forkCommand(run, step, step && !wanted ? [edit] : [], way.offline)} />
      {may?.allowed && <button name="fork" class="main">{way.offline ? "Fork offline" : "Fork for real"}</button>}
    </form>}</div>;
}

/** What of the request is changed. */
function Edited({ before, now }: {before: string, now: string}) {
  if (before === now) return <p class="note">no changes yet</p>;
  try {
    JSON.parse(now);
  } catch (problem) {
    return <p class="problem">no JSON: {shown((problem as Error).message)}</p>;
  }
  const lines = changedLines(before, now);
  return lines.left.length + lines.right.length > MOST_COMPARED
    ? <p class="note">too many changes to show</p>
    : <><h3>Changes</h3><Words left={lines.left} right={lines.right} /></>;
}

export function Command({ text }: {text: string}) {
  const [copied, setCopied] = useState("");
  return <div class="bar"><pre class="text command" tabIndex={0}>{text}</pre>
    <button type="button" onClick={() => navigator.clipboard.writeText(text).then(() => setCopied(text))}>{copied === text ? "Copied" : "Copy"}</button></div>;
}
