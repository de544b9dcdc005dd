// Shows what was recorded of a mode under the setup of the controls. The address keeps the choice.
document.querySelectorAll(".clinic-switches").forEach(root => {
  const data = JSON.parse(root.querySelector("script").textContent);
  const names = Object.keys(data.parameters);
  const make = (tag, values = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), values);
    element.append(...children);
    return element;
  };
  const same = (a, b) => a.every((value, at) => String(value) === String(b[at]));
  const recorded = chosen => data.setups.find(each => same(each.setup, chosen));
  const valuesOf = at => [...new Set(data.setups.map(each => each.setup[at]))];
  // A program that works prints what is right; a record has what the broken one says otherwise, and nothing of the fixed one.
  const said = (each, at) => each.outcomes[at] === "works" ? data.prints : at === 0 ? data.says[each.says] : "";
  const inWords = setup => `${setup[0]} x${setup[1]}, saved as ${setup[2]}, Keras ${setup[3]}`;

  // The setup of the address, where it was recorded; what is missing in the address is as on the page.
  const asked = new URLSearchParams(location.search);
  let chosen = names.map((name, at) => asked.get(name) ?? data.chosen[at]);
  let note = "";
  if (!recorded(chosen)) {
    note = `The address asks for ${inWords(chosen)}, which was not recorded. This is ${inWords(data.chosen)}.`;
    chosen = [...data.chosen];
  }

  const controls = names.map((name, at) => {
    const values = valuesOf(at).sort((a, b) => typeof a === "number" ? a - b : 0);
    const control = make("select", {name, disabled: values.length === 1}, ...values.map(value => make("option", {}, String(value))));
    control.onchange = () => choose(chosen.map((value, other) => other === at ? control.value : value), at);
    return control;
  });
  const labels = controls.map((control, at) => make("label", {}, `${data.parameters[names[at]]} `, control));
  const card = make("div", {className: "clinic-line"});
  card.setAttribute("role", "status");
  const map = make("div", {className: "clinic-places"});
  const programs = make("div");
  root.replaceChildren(make("div", {className: "clinic-filters"}, ...labels), card, map, programs);

  // Keeps the value that was changed last; the others follow where the combination was not recorded.
  function choose(wanted, kept) {
    note = "";
    chosen = recorded(wanted) ? wanted : nearest(wanted, kept).setup;
    show();
    const link = new URL(location);
    names.forEach((name, at) => link.searchParams.set(name, chosen[at]));
    history.replaceState(null, "", link);
  }

  function nearest(wanted, kept) {
    const near = each => each.setup.filter((value, at) => String(value) === String(wanted[at])).length;
    const possible = data.setups.filter(each => String(each.setup[kept]) === String(wanted[kept]));
    return possible.reduce((best, each) => near(each) > near(best) ? each : best);
  }

  function show() {
    const now = recorded(chosen);
    controls.forEach((control, at) => { control.value = chosen[at]; });
    const counts = data.setups.filter(each => each.setup[0] === now.setup[0]).map(each => each.setup[1]);
    controls[1].querySelectorAll("option").forEach(option => { option.disabled = !counts.includes(Number(option.value)); });
    card.dataset.outcome = now.outcomes[0];
    card.replaceChildren(
      ...(note ? [make("p", {}, note)] : []),
      make("p", {}, make("b", {}, `${data.icons[now.outcomes[0]]} ${now.outcomes[0]}: ${now.headline}`)),
      make("p", {}, `${data.mode} under ${inWords(now.setup)}`),
      ...data.subjects.map((subject, at) => make("p", {}, make("b", {}, subject), `: ${now.outcomes[at]} (${now.evidence}) `,
        ...(said(now, at) ? [make("code", {}, said(now, at))] : []))),
      make("p", {}, `Recorded with ${data.versions[now.versions]}. `, make("a", {href: link(now.setup)}, "Link to this setup")),
    );
    showPlaces(now);
    const open = [...programs.querySelectorAll("details")].map(each => each.open);
    programs.replaceChildren(...data.subjects.map((subject, at) => program(`${subject}.py`, now.programs[at], open[at] ?? false)));
    dispatchEvent(new Event("resize")); // what scrolls can be reached with the keyboard: see book.js
  }

  const link = setup => `?${new URLSearchParams(names.map((name, at) => [name, setup[at]]))}`;

  // The broken program under every strategy and number of devices, with the format and the version of Keras of the controls.
  function showPlaces(now) {
    const here = data.setups.filter(each => same(each.setup.slice(2), now.setup.slice(2)));
    const counts = [...new Set(here.map(each => each.setup[1]))].sort((a, b) => a - b);
    const rows = [...new Set(here.map(each => each.setup[0]))].map(strategy => make("tr", {}, make("th", {scope: "row"}, strategy),
      ...counts.map(count => make("td", {}, ...here.filter(each => each.setup[0] === strategy && each.setup[1] === count).map(place)))));
    const head = make("tr", {}, make("th", {}, "Strategy"), ...counts.map(count => make("th", {scope: "col"}, `x${count}`)));
    const caption = make("caption", {}, `The broken program, saved as ${now.setup[2]}, Keras ${now.setup[3]}`,
      make("span", {}, `: ${[...new Set(here.map(each => each.outcomes[0]))].map(each => `${data.icons[each]} ${each}`).join(", ")}`));
    const focused = map.contains(document.activeElement);
    map.replaceChildren(make("table", {className: "clinic-table"}, caption, make("thead", {}, head), make("tbody", {}, ...rows)));
    if (focused) map.querySelector("[aria-pressed=true]").focus();
  }

  function place(each) {
    const [outcome] = each.outcomes;
    const button = make("button", {type: "button", onclick: () => choose(each.setup, 0)}, data.icons[outcome], make("span", {}, ` ${outcome}`));
    button.dataset.outcome = outcome;
    button.setAttribute("aria-label", `${each.setup[0]} x${each.setup[1]}: ${outcome}`);
    button.setAttribute("aria-pressed", String(same(each.setup, chosen)));
    return button;
  }

  function program(name, number, open) {
    const lines = data.programs[number].map(at => data.lines[at]);
    const marked = line => data.marks.some(mark => line.includes(mark));
    const text = make("pre", {}, ...lines.flatMap(line => [marked(line) ? make("mark", {}, line) : line, "\n"]));
    const code = make("div", {className: "highlight"}, text, copyButton(() => text.textContent));
    return make("details", {open}, make("summary", {}, `${name} for this setup`), code);
  }

  show();
});
