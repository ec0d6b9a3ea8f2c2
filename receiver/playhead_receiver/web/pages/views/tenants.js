// Whose runs are shown: each token is of one tenant.
import { link } from "../address.js";
import { holder, tokens, use } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { brief } from "../words.js";

const OWN = "default tenant";

/** The tenant, if it has a name; a choice, if tokens of several were handed over in this session. */
export function Tenants() {
  const [held, setHeld] = useState(/** @type {{token: string, tenant: string, current: boolean}[]} */ ([]));
  useEffect(() => {
    Promise.allSettled(tokens().map(holder)).then((found) => setHeld(found.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []))));
  }, []);
  const current = held.find((one) => one.current)?.tenant ?? "";
  const tenants = [...new Set(held.map((one) => one.tenant))];
  if (tenants.length < 2) return current && html`<span class="quiet">tenant ${brief(current, 40)}</span>`;
  const choose = (/** @type {string} */ tenant) => {
    use(held.findLast((one) => one.tenant === tenant)?.token ?? "");
    location.assign(link({ view: "runs" }));
  };
  return html`<label>tenant <select name="tenant" value=${current} onChange=${(/** @type {any} */ event) => choose(event.target.value)}>
    ${tenants.map((one) => html`<option key=${one} value=${one}>${brief(one, 40) || OWN}</option>`)}</select></label>`;
}
