// A page with data-live listens to that stream; each event fetches the page
// again and merges its #live region into this one. What is open, focused,
// selected or typed stays.
import { Idiomorph } from "idiomorph";

export function live(afterSwap) {
  const region = document.getElementById("live");
  const url = document.querySelector("[data-live]")?.dataset.live;
  if (!region || !url) return;
  const offline = document.getElementById("offline");
  const stream = new EventSource(url);
  let busy = false;
  let again = false;
  let trouble = 0;

  const refresh = async () => {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "error" });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("live");
      if (fresh) merge(region, fresh);
      afterSwap(region);
      offline.hidden = true;
    } catch {
      offline.hidden = false;
    }
    busy = false;
    if (again) {
      again = false;
      refresh();
    }
  };

  stream.addEventListener("message", refresh);
  stream.addEventListener("change", refresh);
  stream.addEventListener("open", () => {
    refresh(); // what happened since the page was made, or while the line was down
    trouble = 0;
    offline.hidden = true;
  });
  stream.addEventListener("error", () => {
    trouble += 1;
    if (trouble > 1 || stream.readyState === EventSource.CLOSED) offline.hidden = false;
  });
  addEventListener("pagehide", () => stream.close());
}

// merge changes what differs and leaves the rest in place, so that a button that
// is being pressed, or has the focus, is still the same button afterwards.
function merge(region, fresh) {
  Idiomorph.morph(region, fresh, {
    callbacks: {
      beforeNodeMorphed: (node) => !touched(node),
      beforeAttributeUpdated: (name, node) => !(name === "open" && node.localName === "details"),
    },
  });
}

// touched tells whether a person has changed a field: it is never taken away.
function touched(node) {
  if (node.localName === "select") return [...node.options].some((option) => option.selected !== option.defaultSelected);
  if (node.localName === "textarea") return node.value !== node.defaultValue;
  return node.localName === "input" && (node.value !== node.defaultValue || node.checked !== node.defaultChecked);
}
