// The review's rate: a slider beside the number, and how long the batch takes at
// it, in the words that the server uses.
export function rate() {
  const part = document.querySelector("[data-rate]");
  if (!part) return;
  const number = part.querySelector("input[type=number]");
  const slider = part.querySelector("input[type=range]");
  const said = part.querySelector("[data-lasts]");
  const show = () => {
    const perMinute = Number(number.value);
    if (Number.isInteger(perMinute) && perMinute > 0) said.textContent = `about ${words(Math.round((Number(part.dataset.rate) * 60) / perMinute))}`;
  };
  number.addEventListener("input", () => {
    slider.value = number.value;
    show();
  });
  slider.addEventListener("input", () => {
    number.value = slider.value;
    show();
  });
}

// words writes seconds in at most two units, as component.Duration does.
function words(seconds) {
  const units = [["d", 86400, 172800], ["h", 3600, 3600], ["min", 60, 60], ["s", 1, 0]]; // the last: from when on
  const at = units.findIndex(([, , from]) => seconds >= from);
  const [unit, size] = units[at];
  const rest = units[at + 1];
  const more = rest ? Math.floor((seconds % size) / rest[1]) : 0;
  return `${Math.floor(seconds / size)} ${unit}${more ? ` ${more} ${rest[0]}` : ""}`;
}
