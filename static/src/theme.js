// The choice is kept in a cookie, so that the server renders the page in it
// and nothing flashes. Without a choice the system's preference rules.
const dark = matchMedia("(prefers-color-scheme: dark)");

export function theme() {
  const root = document.documentElement;
  const shown = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  for (const button of document.querySelectorAll("[data-theme-switch]")) {
    const label = () => button.setAttribute("aria-label", shown() === "dark" ? "Use the light theme" : "Use the dark theme");
    label();
    dark.addEventListener("change", label);
    button.addEventListener("click", () => {
      const next = shown() === "dark" ? "light" : "dark";
      root.dataset.theme = next;
      const secure = location.protocol === "https:" ? "; Secure" : "";
      document.cookie = `theme=${next}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
      label();
    });
  }
}
