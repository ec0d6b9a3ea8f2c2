// How long runs are kept, who may look or act, and who did.
import { link } from "../address.js";
import { html } from "../html.js";
import { useAsked } from "../parts.js";
import { age, brief, shown, size } from "../words.js";

export function Retention() {
  const { value, problem } = useAsked("retention");
  if (!value) return problem ? html`<p class="note">${shown(problem)}</p>` : null;
  const { policy, next } = value;
  const rows = policy
    ? [...Object.entries(policy.seconds).map(([name, s]) => [name, s === null ? "forever" : lasting(/** @type {number} */ (s))]),
        ...(policy.success_share < 1 ? [["share of successful runs kept", `${policy.success_share * 100} %; the others are kept as tests`]] : []),
        ["budget", policy.budget_bytes === null ? "none" : `${size(policy.budget_bytes)}: above it the oldest runs are deleted`],
        ["next deletion", next ? html`<a href=${link({ view: "run", run: next.run })}>${brief(next.run)}</a> in ${until(next.time_ns)}` : value.looked_ns ? "no run expires" : "not known yet"]]
    : [["policy", "off: runs are only deleted by hand"]];
  return html`<h2>retention</h2><table aria-label="retention"><tbody>
    ${[...rows, ["held, flagged", `${value.held}, ${value.flagged} runs`]].map(([name, said]) => html`<tr key=${name}><th scope="row">${brief(name)}</th><td>${said}</td></tr>`)}</tbody></table>`;
}

/** How long until a time. @param {number} ns */
const until = (ns) => age(Date.now() * 1e6, ns / 1e6);

/** Seconds as a policy writes them. @param {number} s */
function lasting(s) {
  const [unit, long] = /** @type {[string, number]} */ ([["d", 86400], ["h", 3600], ["m", 60], ["s", 1]].find(([, one]) => s % Number(one) === 0) ?? ["s", 1]);
  return `${s / long}${unit}`;
}

export function Tokens() {
  const { value } = useAsked("tokens");
  if (!value?.tokens.length) return null;
  const state = (/** @type {any} */ one) => one.revoked_ns !== null ? "revoked" : one.expires_ns === null ? "forever" : one.expires_ns < Date.now() * 1e6 ? "expired" : `for ${until(one.expires_ns)}`;
  return html`<h2>tokens</h2><table aria-label="tokens"><thead><tr><th scope="col">Name</th><th scope="col">Id</th><th scope="col">Scopes</th><th scope="col">Created</th><th scope="col">Last used</th><th scope="col">Valid</th></tr></thead>
    <tbody>${value.tokens.map((/** @type {any} */ one) => html`<tr key=${one.id}><th scope="row">${brief(one.name)}</th><td>${one.id}</td><td>${one.scopes.join(", ")}</td><td>${age(one.created_ns)} ago</td><td>${one.used_ns === null ? "" : `${age(one.used_ns)} ago`}</td><td class=${one.revoked_ns === null ? "" : "quiet"}>${state(one)}</td></tr>`)}</tbody></table>`;
}

export function Audit() {
  const { value, problem } = useAsked("audit", { limit: 50 });
  return html`<h2>audit</h2>
    ${problem && html`<p class="note">${shown(problem)}</p>`}
    ${value && !value.notes.length && html`<p class="note">no entries: callers are recorded once the data folder has a token</p>`}
    ${value?.notes.length > 0 && html`<table><thead><tr><th scope="col">Age</th><th scope="col">Caller</th><th scope="col">Action</th><th scope="col">Subject</th></tr></thead>
      <tbody>${value.notes.map((/** @type {any} */ one) => html`<tr key=${one.number}><td>${age(one.time_ns)}</td><td>${brief(one.name || one.token)}</td><td>${brief(one.action)}</td><td>${brief(one.subject, 80)}</td></tr>`)}</tbody></table>`}`;
}
