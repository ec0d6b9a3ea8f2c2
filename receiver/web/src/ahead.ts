// The first question of a view, asked while its modules are still on their way.
import { here } from "./address.ts";
import { askAhead, keepToken } from "./api.ts";
import { FIRST } from "./questions.ts";
import { viewOf } from "./views.ts";

keepToken();
// An address that differs in its fragment alone opens no page anew.
addEventListener("hashchange", () => keepToken() && location.reload());
const place = here();
const first = FIRST[viewOf(place)];
/** Done when the first question is answered. */
export const answered = first ? askAhead(...first(place)) : Promise.resolve();
