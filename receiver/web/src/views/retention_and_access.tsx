// How long runs are kept, who may look or act, and who did.
import { link } from "../address.ts";
import { useAsked } from "../parts.tsx";
import { age, brief, shown, size } from "../words.ts";

export function Retention() {
  const { value, problem } = useAsked("retention");
  if (!value) return problem ? <p class="note">{shown(problem)}</p> : null;
  const { policy, next } = value;
  const rows = policy
    ? [...Object.entries(policy.seconds).map(([name, s]) => [name, s === null ? "forever" : lasting((s as number))]),
        ...(policy.success_share < 1 ? [["share of successful runs kept", `${policy.success_share * 100} %; the others are kept as tests`]] : []),
        ["budget", policy.budget_bytes === null ? "none" : `${size(policy.budget_bytes)}: above it the oldest runs are deleted`],
        ["next deletion", next ? <><a href={link({ view: "run", run: next.run })}>{brief(next.run)}</a> in {until(next.time_ns)}</> : value.looked_ns ? "no run expires" : "not known yet"]]
    : [["policy", "off: runs are only deleted by hand"]];
  return <><h2>Retention</h2><table aria-label="retention"><tbody>
    {[...rows, ["held, flagged", `${value.held}, ${value.flagged} runs`]].map(([name, said]) => <tr key={name}><th scope="row">{brief(name)}</th><td>{said}</td></tr>)}</tbody></table></>;
}

/** How long until a time. */
const until = (ns: number) => age(Date.now() * 1e6, ns / 1e6);

/** Seconds as a policy writes them. */
function lasting(s: number) {
  const [unit, long] = ([["d", 86400], ["h", 3600], ["m", 60], ["s", 1]].find(([, one]) => s % Number(one) === 0) ?? ["s", 1]) as [string, number];
  return `${s / long}${unit}`;
}

export function Tokens() {
  const { value } = useAsked("tokens");
  if (!value?.tokens.length) return null;
  const state = (one: any) => one.revoked_ns !== null ? "revoked" : one.expires_ns === null ? "forever" : one.expires_ns < Date.now() * 1e6 ? "expired" : `for ${until(one.expires_ns)}`;
  return <><h2>Tokens</h2><table aria-label="tokens"><thead><tr><th scope="col">Name</th><th scope="col">Id</th><th scope="col">Scopes</th><th scope="col">Created</th><th scope="col">Last used</th><th scope="col">Valid</th></tr></thead>
    <tbody>{value.tokens.map((one: any) => <tr key={one.id}><th scope="row">{brief(one.name)}</th><td>{one.id}</td><td>{one.scopes.join(", ")}</td><td>{age(one.created_ns)} ago</td><td>{one.used_ns === null ? "" : `${age(one.used_ns)} ago`}</td><td class={one.revoked_ns === null ? "" : "quiet"}>{state(one)}</td></tr>)}</tbody></table></>;
}

const TRACE = /^[0-9a-f]{32}(\/|$)/;

export function Audit() {
  const { value, problem } = useAsked("audit", { limit: 50 });
  const runs = useAsked(value?.notes.length ? "runs" : "", { q: "mode:all", limit: 500 }).value?.runs ?? [];
  const names = new Map<string, string>(runs.map((one: any) => [one.trace_id, one.name]));
  return <><h2>Audit</h2>
    {problem && <p class="note">{shown(problem)}</p>}
    {value && !value.notes.length && <p class="note">no entries: callers are recorded once the data folder has a token</p>}
    {value?.notes.length > 0 && <table><thead><tr><th scope="col">Age</th><th scope="col">Caller</th><th scope="col">Action</th><th scope="col">Subject</th></tr></thead>
      <tbody>{value.notes.map((one: any) => <tr key={one.number}><td>{age(one.time_ns)}</td><td>{brief(one.name || one.token)}</td><td>{brief(one.action)}</td><td>{TRACE.test(one.subject) ? <a href={link({ view: "run", run: one.subject.slice(0, 32) })}>{brief(names.get(one.subject.slice(0, 32)) ?? one.subject, 80)}</a> : brief(one.subject, 80)}</td></tr>)}</tbody></table>}</>;
}
