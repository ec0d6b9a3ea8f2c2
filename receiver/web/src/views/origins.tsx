// Where the arguments of the calls at a step come from: the sources that held each value before.
import { useState } from "preact/hooks";
import { link } from "../address.ts";
import { inWords, stepOf } from "../findings.ts";
import { useAsked, Waiting } from "../parts.tsx";
import { pathOf } from "../questions.ts";
import { brief } from "../words.ts";

/** Sources of a value that are shown, the earliest ones. */
const MOST = 5;

export function Origins({ run, step }: { run: string; step: number }) {
  const [open, setOpen] = useState(false);
  return <section class="origins" aria-label="origins of the arguments">
    <button aria-expanded={open} onClick={() => setOpen(!open)}>Where do the arguments come from?</button>
    {open && <Found run={run} step={step} />}</section>;
}

function Found({ run, step }: { run: string; step: number }) {
  const { value, problem } = useAsked(`${pathOf(run)}/steps/${step}/blame`);
  if (!value) return <Waiting problem={problem} />;
  return <div class="wide" tabIndex={0}><table><thead><tr><th scope="col">Argument</th><th scope="col">Value</th><th scope="col">Held before by</th></tr></thead>
    <tbody>{value.calls.flatMap((call: any) => call.values.map((one: any, at: number) => <tr key={`${call.place} ${at}`}>
      <td>{brief(call.name, 60)} <b>{brief(one.path, 80)}</b>{one.is_part && <span class="quiet"> a part</span>}</td>
      <td class="text">{brief(one.value, 120)}</td>
      <td class="text">{one.origins.slice(0, MOST).map((origin: any, number: number) => <div key={number} title={brief(origin.quote, 300)}><Source run={run} origin={origin} /></div>)}
        {one.origins.length > MOST && <span class="quiet">{one.origins.length - MOST} more: playhead blame {brief(run)}:{step}</span>}
        {!one.origins.length && <span class="quiet">no recorded source: the model wrote it, or the program made it</span>}</td></tr>))}</tbody></table></div>;
}

/** A source, with a link to its step. */
function Source({ run, origin }: { run: string; origin: any }) {
  const step = stepOf(origin.place);
  return <>{step ? <a href={link({ view: "run", run, step })}>step {brief(origin.place, 20)}</a> : ""} {inWords(origin.kind)} <span class="quiet">{brief(origin.name, 80)}{origin.exact ? "" : ", in another spelling"}</span></>;
}
