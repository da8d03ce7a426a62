// The light or dark theme, from the system or the user's choice.

import { byId } from "./dom.js";

const KEY = "csp-theme";

export function startTheme() {
  const choice = byId("theme");
  choice.value = localStorage.getItem(KEY) ?? "auto";
  const apply = () => {
    document.documentElement.dataset.theme = choice.value;
    localStorage.setItem(KEY, choice.value);
  };
  choice.addEventListener("change", apply);
  apply();
}
