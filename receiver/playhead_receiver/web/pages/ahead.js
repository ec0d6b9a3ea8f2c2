// The first question of a view, asked while its modules are still on their way.
import { here } from "./address.js";
import { askAhead, keepToken } from "./api.js";
import { FIRST } from "./questions.js";
import { viewOf } from "./views.js";

keepToken();
// An address that differs in its fragment alone opens no page anew.
addEventListener("hashchange", () => keepToken() && location.reload());
const place = here();
const first = FIRST[viewOf(place)];
/** Done when the first question is answered. */
export const answered = first ? askAhead(...first(place)) : Promise.resolve();
