// A page with data-live listens to that stream; each event fetches the page
// again and swaps the #live region. What is open, focused or selected stays.
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
      if (fresh) swap(region, fresh);
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

function swap(region, fresh) {
  const selection = getSelection();
  if (!selection.isCollapsed && region.contains(selection.anchorNode)) selection.removeAllRanges();
  const typed = region.querySelector("textarea:focus, input:focus");
  if (typed && typed.value !== typed.defaultValue) return; // never takes away what one types
  const focused = region.contains(document.activeElement) ? document.activeElement.id : "";
  for (const details of region.querySelectorAll("details[id]")) {
    const twin = fresh.querySelector(`#${CSS.escape(details.id)}`);
    if (twin) twin.open = details.open;
  }
  for (const field of region.querySelectorAll("textarea[id]")) {
    const twin = fresh.querySelector(`#${CSS.escape(field.id)}`);
    if (twin) twin.value = field.value;
  }
  region.replaceChildren(...fresh.childNodes);
  if (focused) document.getElementById(focused)?.focus();
}
