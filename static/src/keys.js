// Keys move and open; none of them changes anything.
const typing = (target) => target.closest("input, textarea, select, [contenteditable]");

export function keyboard() {
  let going = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (performance.now() < going) {
      going = 0;
      const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (link) {
        event.preventDefault();
        link.click();
      }
      return;
    }
    switch (event.key) {
      case "/":
        focusSearch(event);
        break;
      case "g":
        going = performance.now() + 1200;
        break;
      case "?":
        document.getElementById("help")?.togglePopover();
        break;
      case "j":
        move(1);
        break;
      case "k":
        move(-1);
        break;
      case "x":
        document.activeElement.closest("[data-row]")?.querySelector("input[data-select]")?.click();
        break;
    }
  });
}

function focusSearch(event) {
  const box = document.querySelector("[data-search]");
  if (!box) return;
  event.preventDefault();
  box.focus();
  box.select();
}

// The row's own link carries the focus, so Enter opens it without our help.
function move(step) {
  const links = [...document.querySelectorAll("[data-row] a[data-open]")];
  if (links.length === 0) return;
  const at = links.findIndex((link) => link.closest("[data-row]").contains(document.activeElement));
  const next = at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + step, 0), links.length - 1);
  links[next].focus();
  links[next].scrollIntoView({ block: "nearest" });
}
