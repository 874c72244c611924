// Everything works without this file; it only makes the console quicker to use.
import { copyButtons } from "./copy.js";
import { keyboard } from "./keys.js";
import { selection } from "./select.js";
import { live } from "./live.js";
import { rate } from "./rate.js";
import { theme } from "./theme.js";
import { localTimes } from "./times.js";

document.documentElement.classList.add("js");
theme();
copyButtons();
keyboard();
selection();
rate();
localTimes(document);
live((region) => localTimes(region));

// Typing a time for later chooses "at a time".
document.addEventListener("input", (event) => {
  const radio = event.target.closest("[data-chooses]")?.querySelector("input[type=radio]");
  if (radio && radio !== event.target) radio.checked = true;
});

// An open menu closes when one clicks elsewhere or presses Escape.
const closeMenus = (except) => {
  for (const menu of document.querySelectorAll("details.drop[open]")) {
    if (menu !== except) menu.open = false;
  }
};
document.addEventListener("click", (event) => closeMenus(event.target.closest("details.drop")));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") closeMenus(null);
});
