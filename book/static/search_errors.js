// Finds the failure modes of an error message by the wordings of triage, or by words if no wording is known.
document.querySelectorAll(".clinic-search").forEach(root => {
  const data = JSON.parse(root.querySelector("script").textContent);
  const field = root.querySelector("textarea");
  const found = root.querySelector(".clinic-found");
  const GAP = 500;  // characters that a gap in a wording stands for, at most

  const flat = text => text.replace(/['"`´‘’“”*]/g, "").replace(/\\n/g, " ").replace(/\\/g, "/").toLowerCase().split(/\s+/).join(" ").trim();
  const follows = (pieces, text, start) => {
    for (const piece of pieces) {
      const place = text.indexOf(piece, start);
      if (place < 0 || (piece !== pieces[0] && place > start + GAP)) return false;
      start = place + piece.length;
    }
    return true;
  };
  const has = (readings, text) => readings.some(pieces => follows(pieces, text, 0));
  const fits = ([, , expression, says, unless], text) => (!expression || new RegExp(expression).test(text))
    && says.every(readings => has(readings, text)) && !unless.some(readings => has(readings, text));

  // The surest wording of each mode, or of each kind of error that is none of the modes.
  function known(text) {
    const best = new Map();
    for (const wording of data.wordings.filter(each => fits(each, text))) {
      const key = wording[0] || wording[5];
      if (!best.has(key) || best.get(key)[1] < wording[1]) best.set(key, wording);
    }
    return [...best.values()].sort((a, b) => b[1] - a[1]).slice(0, 3);
  }
  function similar(text) {
    const words = [...new Set(text.split(/[^\w.]+/).filter(word => word.length > 2))];
    const score = texts => words.filter(word => texts.includes(word)).length;
    return Object.entries(data.modes).map(([mode, [title, , , texts]]) => [mode, score(`${title.toLowerCase()} ${texts}`)])
      .filter(([, count]) => count > 0).sort((a, b) => b[1] - a[1]).slice(0, 5).map(([mode]) => mode);
  }

  const make = (tag, values, ...children) => {
    const element = Object.assign(document.createElement(tag), values);
    element.append(...children);
    return element;
  };
  function row(mode) {
    const [title, page, fix] = data.modes[mode];
    return make("li", {}, make("a", {href: page}, title), make("br", {}), `Fix: ${fix}`);
  }
  function show() {
    const text = flat(field.value);
    const wordings = text ? known(text) : [];
    root.dataset.modes = wordings.map(([mode]) => mode || "none").join(" ");
    if (!text) return found.replaceChildren();
    if (!wordings.length) {
      const modes = similar(text);
      const words = modes.length ? "No known message. Pages with these words:" : "No known message, and no page with these words.";
      return found.replaceChildren(make("p", {}, words), make("ul", {}, ...modes.map(row)));
    }
    const none = wordings[0][0] ? "" : `This is none of the failure modes: ${wordings[0][5]}.`;
    const modes = wordings.filter(([mode]) => mode).map(([mode]) => row(mode));
    found.replaceChildren(make("p", {}, none || "This message leads to:"), make("ul", {}, ...modes));
  }
  field.addEventListener("input", show);
  show();  // the browser may have kept the text
});
