// The time of the runs that are shown: a stretch up to now, or between two times.
import { useLayoutEffect, useState } from "preact/hooks";
import { narrowed, valueIn } from "../query_words.ts";
import { localTime, utcTime } from "../words.ts";

const TIMES: [string, string][] = [["", "Any time"], ["1h", "Last hour"], ["1d", "Last 24 hours"], ["7d", "Last 7 days"], ["30d", "Last 30 days"]];
const BETWEEN = "between";

export function TimeRange({ query, narrow }: { query: string; narrow: (q: string) => void }) {
  const [since, until] = [valueIn(query, "since"), valueIn(query, "until")];
  const [choosing, setChoosing] = useState(false);
  const between = choosing || Boolean(until) || !TIMES.some(([time]) => time === since);
  const range = (from: string, to: string) => narrow(narrowed(narrowed(query, "since", from), "until", to));
  const choose = (value: string) => { setChoosing(value === BETWEEN); if (value !== BETWEEN) range(value, ""); };
  return <><select aria-label="time range" name="since" value={between ? BETWEEN : since} onChange={(event: any) => choose(event.target.value)}>
      {TIMES.map(([time, label]) => <option key={time} value={time}>{label}</option>)}<option value={BETWEEN}>Between …</option></select>
    {between && <span class="between"><Time name="from" value={since} take={(time) => range(time, until)} /> – <Time name="until" value={until} take={(time) => range(since, time)} /></span>}</>;
}

/** A date and a time, taken when the field is left or Enter is pressed: while it is typed it is no time yet. */
function Time({ name, value, take }: { name: string; value: string; take: (time: string) => void }) {
  const [typed, setTyped] = useState(localTime(value));
  useLayoutEffect(() => setTyped(localTime(value)), [value]); // at once, or it would undo what is typed already
  const done = (event: any) => { const given = event.currentTarget.value; if (given !== localTime(value)) take(utcTime(given)); };
  return <input type="datetime-local" name={name} aria-label={name} step={1} value={typed} onInput={(event: any) => setTyped(event.target.value)} onBlur={done}
    onKeyDown={(event: any) => { if (event.key === "Enter") { event.preventDefault(); done(event); } }} />;
}
