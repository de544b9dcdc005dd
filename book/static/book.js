// What scrolls can be reached with the keyboard, and the two columns beside the text have names.
const name = (selector, words) => document.querySelectorAll(selector).forEach(each => each.setAttribute("aria-label", words));
name("aside.sidebar-drawer", "All pages");
name("aside.toc-drawer", "This page");
// The titles of the groups of pages are headings, and a heading has a level.
document.querySelectorAll(".caption[role=heading]").forEach(each => each.setAttribute("aria-level", "2"));
const reach = () => document.querySelectorAll("pre, .table-wrapper").forEach(each => {
  if (each.scrollWidth > each.clientWidth) each.tabIndex = 0; else each.removeAttribute("tabindex");
});
reach();
addEventListener("resize", reach);
// The page of search results has no title of its own.
if (!document.querySelector("h1")) {
  const title = document.createElement("h1");
  title.textContent = "Search";
  document.querySelector("article").prepend(title);
}
// Every program has a button that copies it.
function copyButton(text) {
  const button = document.createElement("button");
  button.className = "clinic-copy";
  button.textContent = "Copy";
  button.onclick = () => navigator.clipboard.writeText(text()).then(() => { button.textContent = "Copied"; });
  return button;
}
document.querySelectorAll(".cell_input .highlight").forEach(code => code.append(copyButton(() => code.querySelector("pre").textContent)));
