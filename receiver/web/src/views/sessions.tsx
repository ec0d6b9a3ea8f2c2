// Conversations across runs: a list of them or of their users, and the runs of one as a thread.
import { ChevronLeft } from "lucide-react";
import { go, here, link } from "../address.ts";
import { Empty, Formatted, useAsked, Waiting } from "../parts.tsx";
import { age, brief, cost, date, took } from "../words.ts";
import { Status } from "./overview.tsx";

const MOST_RUNS = 200;

export function Sessions() {
  const { session = "" } = here();
  return session ? <Thread session={session} /> : <List />;
}

function List() {
  const { q = "", by = "" } = here();
  return <main><form class="bar" onSubmit={(event: any) => { event.preventDefault(); go({ view: "sessions", by, q: event.target.q.value }); }}>
      <span class="group" role="group" aria-label="list">{[["", "Sessions"], ["user", "Users"]].map(([of, name]) => <button key={of} type="button" name={`by-${name.toLowerCase()}`} aria-pressed={of === by} onClick={() => go({ view: "sessions", by: of, q })}>{name}</button>)}</span>
      <input type="search" name="q" aria-label="query for runs" value={q} placeholder="user:anna agent:refund since:7d" /></form>
    {by === "user" ? <Users q={q} /> : <Conversations q={q} />}</main>;
}

/** What selects a value of a field in a query. */
const selecting = (field: string, value: string) => `${field}:"${value.replaceAll('"', "")}"`;

function Users({ q }: { q: string }) {
  const { value, problem } = useAsked("stats", { q, by: "user" });
  const found = value?.groups ?? [];
  return <>{!value && <Waiting problem={problem} />}
    {value && <p class="note" role="status">{found.length} users{value.truncated ? ", of the most recent runs" : ""}</p>}
    {value && !found.length && <Empty title={q ? "No user matches" : "No users yet"}>A run belongs to a user if its spans, its resource or its baggage have the attribute <code>user.id</code> or <code>enduser.id</code>.</Empty>}
    {found.length > 0 && <table class="sessions"><thead><tr><th scope="col">User</th><th scope="col" class="right">Runs</th><th scope="col" class="right">Failed</th><th scope="col" class="right wide-only">Duration (median)</th><th scope="col" class="right wide-only">Steps</th><th scope="col" class="right wide-only">Tokens</th><th scope="col" class="right">Cost</th></tr></thead>
      <tbody>{found.map((one: any) => <tr key={one.key}><td class="name"><a href={link({ view: "sessions", q: selecting("user", one.key) })}>{brief(one.key, 60)}</a></td><td class="right"><a href={link({ view: "runs", q: `${q} ${selecting("user", one.key)}`.trim() })}>{one.runs}</a></td>
        <td class={`right ${one.statuses.failure ? "bad" : ""}`}>{one.statuses.failure || ""}</td><td class="right wide-only">{one.duration_p50_ns === null ? "" : took(one.duration_p50_ns)}</td><td class="right wide-only">{one.steps}</td><td class="right wide-only">{one.input_tokens}→{one.output_tokens}</td><td class="right">{cost(one.cost_usd)}</td></tr>)}</tbody></table>}</>;
}

function Conversations({ q }: { q: string }) {
  const { value, problem } = useAsked("conversations", { q, limit: 200 });
  const found = value?.conversations ?? [];
  return <>{!value && <Waiting problem={problem} />}
    {value && <p class="note" role="status">{found.length} sessions{value.truncated ? ", the most recent" : ""}</p>}
    {value && !found.length && <Empty title={q ? "No session matches" : "No sessions yet"}>A run belongs to a session if its spans have the attribute <code>gen_ai.conversation.id</code> or <code>session.id</code>.</Empty>}
    {found.length > 0 && <table class="sessions"><thead><tr><th scope="col">Session</th><th scope="col" class="wide-only">Agent</th><th scope="col">Last status</th><th scope="col" class="right">Runs</th><th scope="col" class="wide-only">Started</th><th scope="col">Last</th><th scope="col" class="right wide-only">Steps</th><th scope="col" class="right wide-only">Tokens</th><th scope="col" class="right">Cost</th></tr></thead>
      <tbody>{found.map((one: any) => <tr key={one.id}><td class="name"><a href={link({ view: "sessions", session: one.id })}>{brief(one.id, 60)}</a></td><td class="wide-only">{brief(one.agent, 40)}</td><td><Status status={one.status} /></td><td class="right">{one.runs}</td>
        <td class="wide-only">{date(one.started_ns)}</td><td>{age(one.last_ns)} ago</td><td class="right wide-only">{one.steps}</td><td class="right wide-only">{one.input_tokens}→{one.output_tokens}</td><td class="right">{cost(one.cost_usd)}</td></tr>)}</tbody></table>}</>;
}

/** The runs of a session, oldest first: what was asked and answered in each. */
function Thread({ session }: { session: string }) {
  const q = selecting("conversation", session);
  const { value, problem } = useAsked("runs", { q, sort: "started", order: "ascending", limit: MOST_RUNS });
  const runs = value?.runs ?? [];
  return <main><div class="bar"><a class="button" href={link({ view: "sessions" })}><ChevronLeft size={14} />Sessions</a><h2>{brief(session, 80)}</h2>
      {value && <span class="quiet" role="status">{runs.length}{value.next ? "+" : ""} runs</span>}<span class="end"><a class="button" href={link({ view: "runs", q })}>Show as a list</a></span></div>
    {!value && <Waiting problem={problem} />}
    {value && !runs.length && <Empty title="No run has this session">It may have been deleted.</Empty>}
    {runs.map((run: any, at: number) => <article class="card" key={run.trace_id}><h2>{at + 1} <a href={link({ view: "run", run: run.name })}>{brief(run.name, 60)}</a> <Status status={run.status} />
        <span class="end quiet">{date(run.started_ns)}, {took(run.ended_ns === null ? -1 : run.ended_ns - run.started_ns)}, {run.steps} steps {cost(run.cost_usd)} <a href={link({ view: "transcript", run: run.name })}>conversation</a></span></h2>
      <div class="in"><div class="said user"><div class="who">asked</div><Formatted text={run.input} none="The recording has no input text." /></div><div class="said output"><div class="who">answered</div><Formatted text={run.result} none="The recording has no output text." /></div></div></article>)}
    {value?.next && <p class="note">There are more: show them as a list.</p>}</main>;
}
