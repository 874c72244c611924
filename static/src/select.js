// Counts ticked rows and ticks a whole page. Without it the form's two buttons
// still plan what is ticked, or all that match.
export function selection() {
  const form = document.querySelector("form[data-selecting]");
  if (!form) return;
  const boxes = () => [...form.querySelectorAll("input[data-select]")];
  const page = form.querySelector("[data-select-page]");
  const all = page.querySelector("input");
  const said = form.querySelector("[data-selected]");
  const word = form.querySelector("[data-select-word]");
  const button = form.querySelector("[data-select-rows]");
  const count = () => {
    const ticked = boxes().filter((box) => box.checked).length;
    all.checked = ticked > 0 && ticked === boxes().length;
    all.indeterminate = ticked > 0 && !all.checked;
    said.textContent = ticked === 0 ? "Nothing selected." : `${ticked} on this page selected.`;
    word.textContent = ticked === 0 ? "Plan a replay of the ticked ones" : `Plan a replay of ${ticked} selected`;
    button.disabled = ticked === 0;
    for (const box of boxes()) box.closest("tr").toggleAttribute("data-picked", box.checked);
  };
  page.hidden = false;
  all.addEventListener("change", () => {
    for (const box of boxes()) box.checked = all.checked;
    count();
  });
  form.addEventListener("change", (event) => {
    if (event.target.matches("input[data-select]")) count();
  });
  window.addEventListener("pageshow", count); // the back button brings ticks back
  count();
}
