// The request of a step as a form: settings, instructions, messages and tools.
import { Plus, Trash2 } from "lucide-react";
import { useRef, useState } from "preact/hooks";
import { type FormField, formRequest, newMessage, partsOf, type Path, settingOf, withValue } from "../request_form.ts";
import { brief, shown } from "../words.ts";

const MOST_ROWS = 12;

/** @param text the request as JSON @param change is called with the changed one */
export function RequestForm({ text, change }: { text: string; change: (text: string) => void }) {
  const [name, setName] = useState("");
  const request = formRequest(text);
  if (!request) return <p class="note">This request has no form: edit it as JSON.</p>;
  const put = (path: Path, value: any) => change(JSON.stringify(withValue(request, path, value), null, 2));
  const add = (list: string) => put([list], [...request[list], list === "tools" ? {} : newMessage(request[list])]);
  return <div class="form">{partsOf(request).map((part) => <fieldset key={part.title}><legend>{part.title}</legend>
    {part.items.map((item, at) => <div class="said" key={at}>
      {item.label && <div class="who">{brief(item.label, 60)}<button type="button" class="end link" aria-label={`remove ${part.title.toLowerCase()} ${at + 1}`} onClick={() => put(item.path as Path, undefined)}><Trash2 size={13} /></button></div>}
      {item.fields.map((field) => <Field key={`${field.path.join()} ${part.items.length}`} field={field} put={put} />)}</div>)}
    {part.title === "Settings" && <div class="bar"><input aria-label="name of a new setting" placeholder="temperature" value={name} onInput={(event: any) => setName(event.target.value)} />
      <button type="button" disabled={!name || name in request} onClick={() => { put([name], null); setName(""); }}><Plus size={13} />Add a setting</button></div>}
    {part.list && <button type="button" onClick={() => add(`${part.list?.[0]}`)}><Plus size={13} />{part.title === "Tools" ? "Add a tool" : "Add a message"}</button>}</fieldset>)}</div>;
}

/** A field keeps what is typed, also while that is no JSON yet. */
function Field({ field, put }: { field: FormField; put: (path: Path, value: any) => void }) {
  const first = useRef(field.value);
  const [typed, setTyped] = useState(() => (typeof field.value === "string" ? field.value : JSON.stringify(field.value, null, field.kind === "json" ? 2 : undefined)));
  const [wrong, setWrong] = useState("");
  const name = field.path.join(".");
  const changed = (event: any) => {
    const text = event.target.value;
    setTyped(text);
    setWrong("");
    if (field.kind === "text") return put(field.path, text);
    if (field.kind === "line") return put(field.path, settingOf(text, first.current));
    try {
      put(field.path, JSON.parse(text));
    } catch (problem) {
      setWrong((problem as Error).message);
    }
  };
  if (field.kind === "line")
    return <label class="setting"><span>{brief(field.label, 60)}</span><input name={name} value={typed} onInput={changed} />
      <button type="button" class="link" aria-label={`remove ${brief(field.label, 60)}`} onClick={() => put(field.path, undefined)}><Trash2 size={13} /></button></label>;
  return <label><span class="quiet">{brief(field.label, 60)}</span><textarea name={name} spellcheck={false} class={field.kind === "text" ? "prose" : ""} rows={Math.min(MOST_ROWS, typed.split("\n").length + 1)} value={typed} onInput={changed}></textarea>
    {wrong && <span class="problem" role="alert">no JSON: {shown(wrong)}</span>}</label>;
}
