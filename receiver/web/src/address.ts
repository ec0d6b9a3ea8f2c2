// Where one is: everything that a view shows is in the address, so a link is a moment in a run.

export function here(): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(location.search));
}

/** The address of a place. */
export function link(place: Record<string, string | number>) {
  const kept = Object.entries(place).filter(([, value]) => value !== "" && value !== undefined);
  return "/?" + new URLSearchParams(kept.map(([name, value]) => [name, `${value}`]));
}

/** Go there, with a step in the history. */
export function go(place: Record<string, string | number>) {
  history.pushState(null, "", link(place));
  dispatchEvent(new Event("placed"));
}

/** Change parts of the place without a step in the history. */
export function move(changed: Record<string, string | number>) {
  history.replaceState(null, "", link({ ...here(), ...changed }));
  dispatchEvent(new Event("placed"));
}
