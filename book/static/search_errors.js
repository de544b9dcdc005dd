// The field of the page "Find my error": the answer of triage to what is in it, with a link to the page of each mode.
document.querySelectorAll(".clinic-search").forEach(root => {
  const field = root.querySelector("textarea");
  const found = root.querySelector(".clinic-found");
  const data = JSON.parse(root.querySelector("script").textContent);
  let clinic;

  const make = (tag, values, ...children) => {
    const element = Object.assign(document.createElement(tag), values);
    element.append(...children);
    return element;
  };
  const withCode = text => text.split("`").map((piece, place) => place % 2 ? make("code", {}, piece) : piece);
  function row(tag, {before, mode, text, url}) {
    const issue = url ? [" ", make("a", {href: url}, url)] : [];
    const link = mode ? [make("a", {href: clinic.page(mode)}, ...withCode(clinic.title(mode))), " "] : [];
    return make(tag, {}, ...withCode(before ? `${before} ` : ""), ...link, ...withCode(text), ...issue);
  }
  function show() {
    if (!field.value.trim()) {
      root.dataset.modes = "";
      return found.replaceChildren(make("p", {}, data.words.paste));
    }
    clinic ??= makeTriage(data);
    const answer = clinic.triage(field.value);
    const [head, ...rest] = clinic.lines(answer);
    root.dataset.modes = [answer.mode ?? "none", ...answer.candidates.map(each => each.mode ?? "none")].join(" ");
    found.replaceChildren(row("p", head), make("ul", {}, ...rest.map(line => row("li", line))));
  }
  field.addEventListener("input", show);
  show();  // the browser may have kept the text
});
