// A run executed again: replayed as it was, or forked from a step with a change. Here, or as commands.
import { here, move } from "../address.js";
import { order, part } from "../api.js";
import { editOf, forkCommand, replayCommand } from "../commands.js";
import { html, useEffect, useState } from "../html.js";
import { useAsked } from "../parts.js";
import { changedLines } from "../word_difference.js";
import { shown } from "../words.js";
import { Words } from "./compare.js";

const EDITED = ["request.model", "request.temperature", "request.messages[-1].content", "response.choices[0].message.content", "tool_result"];
const MOST_COMPARED = 40_000;

/** @param {{run: string, step: number}} props */
export function Again({ run, step }) {
  const [edit, setEdit] = useState({ path: "", value: "" });
  const [request, setRequest] = useState(/** @type {string | null} */ (null));
  const [way, setWay] = useState({ offline: false, unanswered: "ask" });
  const [said, setSaid] = useState("");
  const may = useAsked("reruns").value;
  const wanted = here().edit === "request" && step > 0;
  const recorded = useAsked(wanted ? `runs/${part(run)}/steps/${step}/request` : "");
  const before = recorded.value?.text;
  const now = request ?? before;
  useEffect(() => setRequest(null), [run, step]);
  const change = (/** @type {any} */ event) => {
    const { name, value } = event.currentTarget;
    setEdit((before) => ({ ...before, [name]: value }));
  };
  const start = (/** @type {string} */ what, /** @type {any} */ body) =>
    order("POST", `runs/${part(run)}/${what}`, body).then(
      (made) => { setSaid(""); move({ rerun: made.id }); },
      (problem) => setSaid(problem.message),
    );
  const fork = (/** @type {any} */ event) => {
    event.preventDefault();
    const one = editOf(edit.path, edit.value);
    start("fork", {
      step: step || null,
      edits: one ? [one] : [],
      request: wanted && now !== before ? now : null,
      ...way,
    });
  };
  return html`<div>
    ${may && !may.allowed && html`<p class="note">${shown(may.why_not)}. Run one of these commands on the agent's machine.</p>`}
    ${said && html`<p class="problem" role="alert">${shown(said)}</p>`}
    <h3>replay</h3><p class="note">All requests are answered from the recording; nothing is sent.</p>
    <${Command} text=${replayCommand(run, step)} />
    ${may?.allowed && html`<button name="replay" class="main" onClick=${() => start("replay", {})}>replay here</button>`}
    <form onSubmit=${fork}><h3>fork</h3>
      <p class="note">${step ? `Replays up to step ${step}, then continues live, as a new run.` : "This span is not a step: the run is replayed as far as the program matches, then continues live."}</p>
      ${step > 0 && html`<div class="bar"><input name="path" list="edited" aria-label="path to edit" placeholder="request.model" value=${edit.path} onInput=${change} />
        <input name="value" aria-label="new value" placeholder="new value" value=${edit.value} onInput=${change} /></div>
        <datalist id="edited">${EDITED.map((one) => html`<option key=${one} value=${one}></option>`)}</datalist>`}
      ${step > 0 && may?.allowed && html`<button type="button" name="edit" aria-expanded=${wanted} onClick=${() => move({ edit: wanted ? "" : "request" })}>${wanted ? "keep the original request" : "edit the whole request"}</button>`}
      ${wanted && recorded.problem && html`<p class="note">${shown(recorded.problem)}</p>`}
      ${wanted && may?.allowed && before !== undefined && html`<textarea name="request" aria-label="edited request" rows="14" spellcheck="false" value=${now} onInput=${(/** @type {any} */ event) => setRequest(event.target.value)}></textarea>
        <${Edited} before=${before} now=${now} />`}
      <p><label><input type="checkbox" checked=${way.offline} onChange=${(/** @type {any} */ event) => setWay({ ...way, offline: event.target.checked })} /> offline: refuse live requests and effects</label></p>
      ${may?.allowed && html`<p><label>if a write was sent but its result is unknown: <select value=${way.unanswered} onChange=${(/** @type {any} */ event) => setWay({ ...way, unanswered: event.target.value })}>
        <option value="ask">stop</option><option value="resend">send it again</option><option value="skip">skip it</option></select></label></p>`}
      <${Command} text=${forkCommand(run, step, step ? [edit] : [], way.offline)} />
      ${may?.allowed && html`<button name="fork" class="main">fork here</button>`}
    </form></div>`;
}

/** What of the request is changed. @param {{before: string, now: string}} props */
function Edited({ before, now }) {
  if (before === now) return html`<p class="note">no changes yet</p>`;
  try {
    JSON.parse(now);
  } catch (problem) {
    return html`<p class="problem">no JSON: ${shown(/** @type {Error} */ (problem).message)}</p>`;
  }
  const lines = changedLines(before, now);
  return lines.left.length + lines.right.length > MOST_COMPARED
    ? html`<p class="note">too many changes to show</p>`
    : html`<h3>changes</h3><${Words} left=${lines.left} right=${lines.right} />`;
}

/** @param {{text: string}} props */
export function Command({ text }) {
  const [copied, setCopied] = useState("");
  return html`<div class="bar"><pre class="text command" tabindex="0">${text}</pre>
    <button type="button" onClick=${() => navigator.clipboard.writeText(text).then(() => setCopied(text))}>${copied === text ? "copied" : "copy"}</button></div>`;
}
