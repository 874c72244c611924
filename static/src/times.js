// Puts the reader's own zone beside every UTC time. Where the zone is UTC
// there is nothing to add.
const clock = { hour: "2-digit", minute: "2-digit", hour12: false };

export function localTimes(root) {
  for (const time of root.querySelectorAll("time[data-local]")) {
    if (time.nextElementSibling?.classList.contains("t-local")) continue;
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime()) || at.getTimezoneOffset() === 0) continue;
    const otherDay = at.getDate() !== at.getUTCDate();
    const parts = otherDay ? { weekday: "short", ...clock } : clock;
    const beside = document.createElement("span");
    beside.className = "t-local";
    beside.textContent = ` ${new Intl.DateTimeFormat("en-GB", { ...parts, timeZoneName: "short" }).format(at)}`;
    time.after(beside);
  }
}
