// Where one is: everything that a view shows is in the address, so a link is a moment in a run.

/** @returns {Record<string, string>} */
export function here() {
  return Object.fromEntries(new URLSearchParams(location.search));
}

/** The address of a place. @param {Record<string, string | number>} place */
export function link(place) {
  const kept = Object.entries(place).filter(([, value]) => value !== "" && value !== undefined);
  return "/?" + new URLSearchParams(kept.map(([name, value]) => [name, `${value}`]));
}

/** Go there, with a step in the history. @param {Record<string, string | number>} place */
export function go(place) {
  history.pushState(null, "", link(place));
  dispatchEvent(new Event("placed"));
}

/** Change parts of the place without a step in the history. @param {Record<string, string | number>} changed */
export function move(changed) {
  history.replaceState(null, "", link({ ...here(), ...changed }));
  dispatchEvent(new Event("placed"));
}
