// Whose runs are shown: each token is of one tenant.
import { link } from "../address.ts";
import { holder, tokens, use } from "../api.ts";
import { useEffect, useState } from "preact/hooks";
import { brief } from "../words.ts";

const OWN = "default tenant";

/** The tenant, if it has a name; a choice, if tokens of several were handed over in this session. */
export function Tenants() {
  const [held, setHeld] = useState<{ token: string; tenant: string; current: boolean }[]>([]);
  useEffect(() => {
    Promise.allSettled(tokens().map(holder)).then((found) => setHeld(found.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []))));
  }, []);
  const current = held.find((one) => one.current)?.tenant ?? "";
  const tenants = [...new Set(held.map((one) => one.tenant))];
  if (tenants.length < 2) return current && <span class="quiet">tenant {brief(current, 40)}</span>;
  const choose = (tenant: string) => {
    use(held.findLast((one) => one.tenant === tenant)?.token ?? "");
    location.assign(link({ view: "runs" }));
  };
  return <label>tenant <select name="tenant" value={current} onChange={(event: any) => choose(event.target.value)}>
    {tenants.map((one) => <option key={one} value={one}>{brief(one, 40) || OWN}</option>)}</select></label>;
}
