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
  const recorded = setup => data.setups.find(each => same(each.setup, setup));
  const valuesOf = at => [...new Set(data.setups.map(each => each.setup[at]))];
  const countsOf = strategy => [...new Set(data.setups.filter(each => each.setup[0] === strategy).map(each => each.setup[1]))].sort((a, b) => a - b);
  // The parameters that change a program and were recorded with more than one value.
  const offered = names.map((name, at) => at).filter(at => data.offered.includes(names[at]) && valuesOf(at).length > 1);
  // A program that works prints what is right; a record has what the broken one says otherwise, and nothing of the fixed one.
  const said = (each, at) => each.outcomes[at] === "works" ? data.prints : at === 0 ? data.says[each.says] : "";
  const saved = setup => data.offered.includes("save_format") ? `, saved as ${setup[2]}` : "";
  const inWords = setup => `${setup[0]} x${setup[1]}${saved(setup)}, Keras ${setup[3]}`;

  // The setup of the address, where it was recorded; what is missing in the address is as on the page.
  const asked = new URLSearchParams(location.search);
  const inAddress = names.map((name, at) => offered.includes(at) && asked.get(name) || data.chosen[at]);
  const found = recorded(inAddress);
  let note = found ? "" : `The address asks for ${inWords(inAddress)}, which was not recorded. This is ${inWords(data.chosen)}.`;
  let chosen = found ? found.setup : [...data.chosen];
  // The number of devices that the reader has chosen last: as in choices.py, a strategy that has it takes it, and one that has
  // only one number does not make it forgotten.
  let wanted = countsOf(chosen[0]).length > 1 ? chosen[1] : data.count;

  const controls = names.map((name, at) => {
    const values = valuesOf(at).sort((a, b) => typeof a === "number" ? a - b : 0);
    const control = make("select", {name}, ...values.map(value => make("option", {}, String(value))));
    control.onchange = () => {
      const value = values[control.selectedIndex];
      choose(chosen.map((other, place) => place === at ? value : other), at === 1 ? value : wanted);
    };
    return control;
  });
  const labels = offered.map(at => make("label", {}, `${data.parameters[names[at]]} `, controls[at]));
  const card = make("div", {className: "clinic-line"});
  card.setAttribute("role", "status");
  const map = make("div", {className: "clinic-places"});
  const programs = make("div");
  root.replaceChildren(make("div", {className: "clinic-filters"}, ...labels), card, map, programs);

  // Shows a setup with the number of devices that is wanted, or the next larger one, or the largest.
  function choose(setup, count) {
    note = "";
    const counts = countsOf(setup[0]);
    if (counts.length > 1) wanted = count;
    chosen = [setup[0], counts.find(count => count >= wanted) ?? counts.at(-1), ...setup.slice(2)];
    show();
    history.replaceState(null, "", link(chosen) + location.hash);
  }

  function show() {
    const now = recorded(chosen);
    controls.forEach((control, at) => { control.value = chosen[at]; });
    const counts = countsOf(chosen[0]);
    controls[1].querySelectorAll("option").forEach(option => { option.disabled = !counts.includes(Number(option.value)); });
    card.dataset.outcome = now.outcomes[0];
    card.replaceChildren(
      ...(note ? [make("p", {}, note)] : []),
      make("p", {}, make("b", {}, `${data.icons[now.outcomes[0]]} ${now.outcomes[0]}: ${now.headline}`)),
      make("p", {}, `${data.mode} under ${inWords(now.setup)}`),
      ...lines(now),
      make("p", {}, `Recorded with ${data.versions[now.versions]}. `, make("a", {href: link(now.setup)}, "Link to this setup")),
    );
    showPlaces(now);
    const open = [...programs.querySelectorAll("details")].map(each => each.open);
    programs.replaceChildren(...data.subjects.map((subject, at) => program(`${subject}.py`, now.programs[at], open[at] ?? false)));
    dispatchEvent(new Event("resize")); // what scrolls can be reached with the keyboard: see book.js
  }

  const link = setup => offered.length ? `?${new URLSearchParams(offered.map(at => [names[at], setup[at]]))}` : location.pathname;

  // A line for each program that has run, and one with the reason where programs have not.
  function lines(now) {
    const missing = now.outcomes.every(outcome => outcome === "unavailable");
    return missing ? [make("p", {}, ...withCode(said(now, 0)))] : data.subjects.map((subject, at) => {
      const words = said(now, at);
      if (now.outcomes[at] === "unavailable") return make("p", {}, make("b", {}, subject), ": ", ...withCode(words || "unavailable"));
      return make("p", {}, make("b", {}, subject), `: ${now.outcomes[at]} (${now.evidence}) `, ...(words ? [make("code", {}, words)] : []));
    });
  }

  const withCode = text => text.split("`").map((piece, at) => at % 2 ? make("code", {}, piece) : piece);

  // The broken program under every strategy and number of devices, with the format and the version of Keras of the controls.
  function showPlaces(now) {
    if (!offered.includes(0)) return;
    const here = data.setups.filter(each => same(each.setup.slice(2), now.setup.slice(2)));
    const counts = [...new Set(here.map(each => each.setup[1]))].sort((a, b) => a - b);
    const rows = [...new Set(here.map(each => each.setup[0]))].map(strategy => make("tr", {}, make("th", {scope: "row"}, strategy),
      ...counts.map(count => make("td", {}, ...here.filter(each => each.setup[0] === strategy && each.setup[1] === count).map(place)))));
    const head = make("tr", {}, make("th", {}, "Strategy"), ...counts.map(count => make("th", {scope: "col"}, `x${count}`)));
    const caption = make("caption", {}, `The broken program${saved(now.setup)}, Keras ${now.setup[3]}`,
      make("span", {}, `: ${[...new Set(here.map(each => each.outcomes[0]))].map(each => `${data.icons[each]} ${each}`).join(", ")}`));
    const focused = map.contains(document.activeElement);
    map.replaceChildren(make("table", {className: "clinic-table"}, caption, make("thead", {}, head), make("tbody", {}, ...rows)));
    if (focused) map.querySelector("[aria-pressed=true]").focus();
  }

  function place(each) {
    const [outcome] = each.outcomes;
    const button = make("button", {type: "button", onclick: () => choose(each.setup, each.setup[1])}, data.icons[outcome], make("span", {}, ` ${outcome}`));
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
