// Copies the exact text, digit by digit: the text stands in an attribute or in
// the element that the button names.
export function copyButtons() {
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-from]");
    if (!button) return;
    const from = button.dataset.copyFrom && document.getElementById(button.dataset.copyFrom);
    const label = button.getAttribute("aria-label");
    try {
      await navigator.clipboard.writeText(from ? from.textContent : button.dataset.copy);
      button.dataset.copied = "";
      button.setAttribute("aria-label", "Copied");
    } catch {
      button.setAttribute("aria-label", "Could not copy; select the text instead");
    }
    setTimeout(() => {
      delete button.dataset.copied;
      button.setAttribute("aria-label", label);
    }, 1500);
  });
}
