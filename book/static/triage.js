// Triage in a browser: what the Python package strategy_clinic.triage does, function by function and with the same names.
// Its data has every expression, weight, wording and description, so that both know the same. A test compares their answers.
function makeTriage(data) {
  const {number} = data;
  const compiled = Object.fromEntries(Object.entries(data.patterns).map(([name, pattern]) => [name, regexp(pattern)]));
  const cached = make => {
    const known = new Map();
    return key => {
      if (!known.has(key)) known.set(key, make(key));
      return known.get(key);
    };
  };
  const expression = cached(key => regexp(JSON.parse(key)));
  const search = (pattern, text) => expression(JSON.stringify(pattern)).exec(text);
  const isWord = letter => letter !== undefined && /[\p{L}\p{N}]/u.test(letter);
  const isDigit = letter => /\d/.test(letter);
  const isUpper = letter => letter !== letter.toLowerCase();
  const isLower = letter => letter !== letter.toUpperCase();
  const sum = numbers => numbers.reduce((all, each) => all + each, 0);
  const round = value => Math.round(value * 1000) / 1000;
  const add = (map, key, value) => map.has(key) ? map.get(key).push(value) : map.set(key, [value]);
  const modes = new Map(data.modes.map(mode => [mode.id, mode]));
  const absent = {mode: null, unless: [], proof: "sure", kind: "", fix: "", error: "", releases: null, named: false};
  const wordings = data.wordings.map(wording => ({...absent, ...wording}));

  function regexp([source, flags]) {
    return new RegExp(source, flags);
  }
  const all = pattern => new RegExp(pattern.source, `${pattern.flags}g`);
  const starts = (pattern, text) => new RegExp(pattern.source, `${pattern.flags}y`).test(text);

  // report_text.py

  const unescaped = text => text.replace(/&(#x[0-9a-f]+|#\d+|\w+);/gi, (whole, name) => {
    if (name[0] !== "#") return {lt: "<", gt: ">", amp: "&", quot: '"', apos: "'", nbsp: "\u00a0"}[name] ?? whole;
    const code = name[1].toLowerCase() === "x" ? parseInt(name.slice(2), 16) : parseInt(name.slice(1), 10);
    return code > 0 && code < 0x110000 ? String.fromCodePoint(code) : whole;
  });

  function flat(text) {
    const kept = text.replace(all(compiled.escaped), "").replace(all(compiled.dropped), "").replaceAll("\\n", " ").replaceAll("\\", "/");
    const cased = kept.split(/\s+/).filter(Boolean).join(" ");
    const lower = cased.toLowerCase();
    return {lower, cased: cased.length === lower.length ? cased : lower};
  }
  function withWholeWords(text) {
    const lines = text.split("\n");
    const cut = lines.map((line, place) => isCut(lines[place - 1] ?? "", line, lines[place + 1] ?? ""));
    if (!cut.includes(true) || text.length > number.pasted) return text;
    return `${text}\n${lines.map((line, place) => line + (cut[place] ? "" : "\n")).join("")}`;
  }
  function isCut(before, line, after) {
    const width = line.length;
    const isFull = [before.length, after.length, ...number.widths].includes(width) && number.width[0] <= width && width <= number.width[1];
    return isFull && after.length <= width && isInWord(line.at(-1)) && isInWord(after[0]);
  }
  const isInWord = letter => isWord(letter) || letter === "_";
  const framesIn = text => text.includes(".py") || text.includes("File ") ? [...text.matchAll(all(compiled.frame))] : [];

  function reportText(pasted) {
    const half = number.longest / 2;
    let text = pasted.length > number.longest ? `${pasted.slice(0, half)}\n${pasted.slice(-half)}` : pasted;
    text = text.replaceAll("\r", "\n").replace(all(compiled.ansi), "").replace(all(compiled.break), "\n");
    if (text.includes("&")) text = unescaped(text);
    text = withWholeWords(text).replace(all(compiled.margin), "").replace(all(compiled.box), "");
    const lines = text.replace(all(compiled.not_raised), "");
    const errors = [...lines.matchAll(all(compiled.raised))]
      .filter(found => !starts(compiled.mentioned, lines.slice(found.index + found[0].length)));
    const raised = errors.length ? lines.slice(errors.at(-1).index) : "";
    const report = {pasted, lines, raised, flat: flat(lines), flatRaised: flat(raised), lastFrame: lastFrame(lines)};
    report.isDescription = !raised && !report.lastFrame;
    report.isCutOff = Boolean(framesIn(raised)[0]) || !/[\p{L}\p{N}_]/u.test(raised.replace(all(compiled.raised), ""));
    return report;
  }
  function lastFrame(lines) {
    const frame = framesIn(lines).at(-1);
    if (!frame) return "";
    const parts = frame.slice(1).filter(Boolean);
    const line = parts.slice(1, -1).map(each => `line ${each}`);
    return displayed([parts[0].replaceAll("\\", "/").split("/").at(-1), ...line, `in ${parts.at(-1)}`].join(", "));
  }
  function codeOf(report) {
    const text = report.pasted.slice(0, number.code_read).replaceAll("\r", "").replace(all(compiled.ansi), "").replace(all(compiled.blank), "\n");
    const frame = framesIn(text)[0];
    return frame ? text.slice(0, frame.index) : text;
  }
  const wordsIn = text => text.split(/\s+/).filter(Boolean);
  function proseOf(report) {
    const text = report.isDescription ? report.lines : report.lines.replace(all(compiled.warned), "");
    const lines = text.replace(all(compiled.fenced), "").split("\n");
    let prose = lines.filter(line => !starts(compiled.code_line, line) && !starts(compiled.form_line, line)).join("\n");
    if (wordsIn(prose).length < number.least_prose) prose = text;
    const read = number.prose_read;
    if (prose.length > 2 * read) prose = `${prose.slice(0, read)}\n${prose.slice(-read)}`;
    return prose.replace(all(compiled.folders), "");
  }
  function displayed(text) {
    const shown = text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "");
    const half = number.shown / 2;
    return shown.length <= number.shown ? shown : `${shown.slice(0, half)} … ${shown.slice(-half)}`;
  }

  // phrases.py

  const stem = cached(word => {
    if (/^\d+$/.test(word) || word.length < 2) return "";
    const rest = word.replace(compiled.stem_end, "");
    const doubled = rest !== word && rest.length > 3 && rest.at(-1) === rest.at(-2) && !"sl".includes(rest.at(-1));
    return doubled ? rest.slice(0, -1) : rest;
  });
  const readings = cached(phrase => {
    const parts = phrase.split(compiled.choice);
    const texts = parts.reduce((all, part, place) =>
      all.flatMap(text => (place % 2 ? part.split("|") : [part]).map(each => text + each)), [""]);
    return texts.map(text => text.split("...").map(piece => flat(piece).lower));
  });
  function phraseMatched(phrase, text) {
    for (const pieces of readings(phrase)) {
      const found = text.lower.includes(pieces[0]) && matchedPieces(pieces, text);
      if (found) return found;
    }
    return "";
  }
  function matchedAtEnd(phrase, text) {
    const end = text.lower.slice(-number.end);
    for (const pieces of readings(phrase)) {
      const found = end.includes(pieces[0].slice(0, number.stub)) && cutOff(pieces, end);
      if (found) return found;
    }
    return "";
  }
  function matchedPieces(pieces, text) {
    if (!pieces.every(piece => text.lower.includes(piece))) return "";
    let tried = 0;
    for (const start of occurrences(pieces[0], text)) {
      if (tried++ === number.starts) break;
      const end = endOfMatch(pieces, text, start);
      if (end) return text.lower.slice(start, end);
    }
    return "";
  }
  function endOfMatch(pieces, text, start) {
    for (const piece of pieces) {
      const next = occurrences(piece, text, start, start + piece.length + number.gap).next();
      if (next.done) return 0;
      start = next.value + piece.length;
    }
    return start;
  }
  function* occurrences(piece, text, start = 0, end = text.lower.length) {
    for (let tries = 0; tries < number.tries; tries++) {
      start = text.lower.indexOf(piece, start);
      if (start < 0 || start + piece.length > end) return;
      if (isWhole(text, start, start + piece.length)) yield start;
      start += 1;
    }
  }
  function isWhole({lower, cased}, start, end) {
    if (isWord(lower[start]) && !beginsWord(cased, start)) return false;
    if (!isWord(lower[end - 1]) || beginsWord(cased, end)) return true;
    const ending = compiled.ending.exec(cased.slice(end, end + number.ending));
    return Boolean(ending) && beginsWord(cased, end + ending[0].length);
  }
  function beginsWord(cased, place) {
    if (place <= 0 || place >= cased.length || !(isWord(cased[place - 1]) && isWord(cased[place]))) return true;
    const before = cased[place - 1], here = cased[place], after = cased[place + 1] ?? "";
    if (isDigit(before) || isDigit(here)) return isDigit(before) !== isDigit(here);
    return isUpper(here) && (isLower(before) || isLower(after));
  }
  function cutOff(pieces, end) {
    if (pieces[0].length < number.stub || !pieces[0].includes(" ")) return "";
    const start = end.lastIndexOf(pieces[0].slice(0, number.stub));
    let place = start, length = 0;
    for (const piece of pieces) {
      const found = end.indexOf(piece, place);
      if (found < 0) {
        const left = leftAtEnd(piece, end, place);
        if (!left && place < end.length) return "";
        length += left;
        break;
      }
      length += piece.length;
      place = found + piece.length;
    }
    const least = number.least_left[Number(pieces.length > 1)] * sum(pieces.map(piece => piece.length));
    return length >= least ? end.slice(start) : "";
  }
  function leftAtEnd(piece, text, place) {
    for (let n = Math.min(piece.length, text.length - place); n > 0; n--) if (text.endsWith(piece.slice(0, n))) return n;
    return 0;
  }

  // releases.py

  const numbersOf = release => /^[\d.]*/.exec(release)[0].match(/\d+/g).map(Number);
  const compare = (a, b) => {
    const place = a.findIndex((number, n) => number !== b[n]);
    return place < 0 ? a.length - b.length : place < b.length ? a[place] - b[place] : 1;
  };
  const namedIn = cached(text => {
    const named = new Map();
    for (const [, name, found] of text.matchAll(all(compiled.named))) {
      for (const [release] of found.matchAll(all(compiled.release))) add(named, data.short_names[name] ?? name, release);
    }
    if (!named.has("keras")) named.set("keras", kerasOf(named.get("tensorflow") ?? []));
    return named;
  });
  function kerasOf(tensorflow) {
    const isKeras2 = tensorflow.every(release => compare(numbersOf(release).slice(0, 2), data.with_keras_3) < 0);
    return isKeras2 ? tensorflow.map(release => release.split(".").slice(0, 2).join(".")) : [];
  }
  function hasRelease({first, last}, release) {
    const numbers = numbersOf(release), cut = end => numbersOf(end).slice(0, numbers.length);
    return compare(cut(first), numbers) <= 0 && (!last || compare(numbers, cut(last)) <= 0);
  }
  function inText(releases, text) {
    const named = namedIn(text).get(releases.package) ?? [];
    return named.length ? named.some(release => hasRelease(releases, release)) : null;
  }

  // near.py

  const plain = text => text.replace(all(compiled.signs), " ").trim();
  const plainReadings = cached(wording => wording.sentence
    ? readings(wording.sentence).map(pieces => pieces.map(plain).filter(Boolean)) : []);
  const lengthOf = pieces => sum(pieces.map(piece => piece.length));

  let madeNearIndex;
  function nearIndex() {
    if (madeNearIndex) return madeNearIndex;
    const pieces = wordings.flatMap((wording, n) => plainReadings(wording).flat().map(piece => [n, piece])), clues = new Map();
    for (const [n, piece] of pieces) {
      for (const [, part] of cuts(piece, allowed(piece))) add(clues, part.slice(0, number.clue), n);
    }
    return madeNearIndex = {pieces, clues, lengths: new Set([...clues.keys()].map(clue => clue.length))};
  }
  function wordingsFor(words, part) {
    const numbers = new Set([...foundIn(words), ...foundIn(part), ...foundAround(part)]);
    return wordings.filter((_, n) => numbers.has(n));
  }
  function foundIn(words) {
    const {clues, lengths} = nearIndex(), found = [];
    for (const length of lengths) {
      for (let place = 0; place < words.length; place++) found.push(...clues.get(words.slice(place, place + length)) ?? []);
    }
    return found;
  }
  function foundAround(words) {
    const halves = cuts(words, 1).map(([, half]) => half);
    return nearIndex().pieces.filter(([, piece]) => halves.some(half => piece.includes(half))).map(([n]) => n);
  }
  const allowed = piece => Math.min(number.most_edits, Math.floor(piece.length / number.per_edit));
  function cuts(piece, most) {
    const size = Math.max(1, Math.ceil(piece.length / (most + 1))), parts = [];
    for (let cut = 0; cut < piece.length; cut += size) parts.push([cut, piece.slice(cut, cut + size)]);
    return parts;
  }

  function withErrors(wording, text) {
    for (const pieces of plainReadings(wording)) {
      const found = mayHaveErrors(pieces) && nearly(pieces, text);
      if (found && endsAlike(pieces.at(-1), found)) return found;
    }
    return "";
  }
  function endsAlike(piece, found) {
    const last = piece.split(" ").at(-1);
    return last.length > number.name || found.trim().split(" ").at(-1) === last;
  }
  function mayHaveErrors(pieces) {
    return lengthOf(pieces) >= (pieces.some(piece => piece.includes(" ")) ? number.least_of_words : number.least);
  }
  function nearly(pieces, text) {
    let begin = -1, place = 0, left = number.most_edits;
    for (const piece of pieces) {
      const end = begin >= 0 ? place + piece.length + number.gap : text.length;
      const most = Math.min(left, allowed(piece));
      const next = nearMatches(piece, text.slice(place, end), most).next();
      if (next.done) return "";
      const [start, stop, errors] = next.value;
      if (begin < 0) begin = place + start;
      place += stop;
      left -= errors;
    }
    return text.slice(Math.max(begin, 0), place);
  }
  const reversed = text => [...text].reverse().join("");
  function* nearMatches(piece, text, most) {
    for (const [cut, part] of cuts(piece, most)) {
      let place = text.indexOf(part);
      for (let tried = 0; place >= 0 && tried < number.places; tried++, place = text.indexOf(part, place + 1)) {
        const stop = place + part.length;
        const [before, length] = edits(reversed(piece.slice(0, cut)), reversed(text.slice(Math.max(0, place - cut - most), place)), most);
        const [after, further] = edits(piece.slice(cut + part.length), text.slice(stop, stop + piece.length), most);
        if (before + after <= most) yield [place - length, stop + further, before + after];
      }
    }
  }
  function edits(piece, text, most) {
    let same = 0;
    while (same < Math.min(piece.length, text.length) && piece[same] === text[same]) same++;
    piece = piece.slice(same);
    text = text.slice(same);
    if (!piece || !most) return [piece ? 1 : 0, same];
    const ways = [[piece.slice(1), text.slice(1), 1], [piece.slice(1), text, 0], [piece, text.slice(1), 1]];
    if (piece.slice(0, 2) === reversed(text.slice(0, 2))) ways.push([piece.slice(2), text.slice(2), 2]);
    const tried = ways.map(([rest, other, taken]) => [...edits(rest, other, most - 1), taken]);
    const [errors, length, taken] = tried.reduce((best, each) => each[0] < best[0] ? each : best);
    return [errors + 1, same + taken + length];
  }
  function short(text) {
    if (text.lower.length > number.short) return "";
    const words = plain(text.cased.replace(all(compiled.raised), " ").toLowerCase());
    return words.length >= number.part && words.includes(" ") ? words : "";
  }
  const partOf = (wording, words) =>
    Math.max(0, ...plainReadings(wording).filter(pieces => pieces.length).map(pieces => share(pieces, words, wording.says.length === 1)));
  function share(pieces, words, mayGoOn) {
    let covered = 0;
    if (pieces.some(piece => !nearMatches(words, piece, 1).next().done)) covered = words.length;
    else if (mayGoOn) covered = Math.max(...pieces.map((_, n) => run(pieces.slice(n), words)));
    return covered >= Math.max(number.part, number.mine * words.length) ? covered / lengthOf(pieces) : 0;
  }
  function run(pieces, words) {
    let length = words.includes(pieces[0]) ? 0 : leftAtStart(pieces[0], words), place = length;
    for (const piece of length ? pieces.slice(1) : pieces) {
      const found = words.indexOf(piece, place);
      if (found < 0) return length + leftAtEnd(piece, words, place);
      place = found + piece.length;
      length += piece.length;
    }
    return length;
  }
  function leftAtStart(piece, words) {
    const least = Math.max(number.clue, Math.trunc(number.mine * piece.length));
    for (let n = Math.min(piece.length, words.length); n > least; n--) if (words.startsWith(piece.slice(-n))) return n;
    return 0;
  }

  // classify.py

  function triage(pasted) {
    const text = reportText(pasted);
    const matches = begun(text.flat).filter(wording => !(wording.alone && text.raised))
      .map(wording => [wording, matched(wording, text.flat)]).filter(([, said]) => said.length);
    let proven = matches.filter(([wording]) => wording.proves);
    if (!text.raised && proven.every(([wording]) => isMention(wording))) proven = [];
    if (!proven.length && text.isCutOff) proven = matches.filter(([wording]) => wording.frame);
    if (proven.length) return weigh(proven, text);
    const known = new Set(matches.map(([wording]) => wording));
    const words = plain(text.flat.lower).slice(-number.read), part = short(text.flat);
    const usable = wordingsFor(words, part).filter(wording => mayBeNear(wording, text) && !known.has(wording));
    const shares = sharesOfMessages(usable, part, text.flat);
    const wrong = nearlyProven(usable, words, text.flat);
    const nearby = wrong.length ? wrong : halves(shares, text.flat);
    if (nearby.length) return weigh(nearby, text);
    const hints = new Set(matches.filter(([wording]) => !wording.frame).map(([wording]) => wording.mode));
    return ask(text, hints, modesOfParts(shares));
  }
  function begun(text) {
    const found = new Set();
    for (const [begins, numbers] of numbersByBeginning()) {
      if (text.lower.includes(begins)) numbers.forEach(n => found.add(n));
    }
    return wordings.filter((_, n) => found.has(n));
  }
  let madeNumbers;
  function numbersByBeginning() {
    if (madeNumbers) return madeNumbers;
    madeNumbers = new Map();
    wordings.forEach((wording, n) => {
      for (const [first] of wording.symptom ? [[""]] : readings(wording.says[0])) add(madeNumbers, first.slice(0, number.stub), n);
    });
    return madeNumbers;
  }
  const isMention = ({mode, proof, error}) => !mode && proof === "likely" && !error;
  function mayBeNear(wording, text) {
    return wording.proves && !(text.raised ? wording.alone : isMention(wording));
  }
  function matched(wording, text) {
    const first = firstMatch(wording, text);
    return first ? withContext(wording, first, text) : [];
  }
  function withContext(wording, first, text) {
    const said = [first, ...wording.says.slice(1).map(phrase => phraseMatched(phrase, text))];
    return said.every(Boolean) && !speaksAgainst(wording, text) ? said : [];
  }
  const speaksAgainst = (wording, text) => isOfAnotherRelease(wording, text) || wording.unless.some(phrase => phraseMatched(phrase, text));
  function isOfAnotherRelease({releases, named}, text) {
    if (!releases) return false;
    const isNamed = inText(releases, text.lower);
    return isNamed === false || (named && !isNamed);
  }
  function firstMatch(wording, text) {
    if (wording.symptom) return search(wording.symptom, text.lower)?.[0] ?? "";
    const whole = phraseMatched(wording.says[0], text);
    return whole || wording.proof === "certain" ? whole : matchedAtEnd(wording.says[0], text);
  }
  function nearlyProven(usable, words, text) {
    return usable.map(wording => [wording, withErrors(wording, words)]).filter(([, first]) => first)
      .map(([wording, first]) => [{...wording, proof: "near"}, withContext(wording, first, text)]).filter(([, said]) => said.length);
  }
  function sharesOfMessages(usable, words, text) {
    const whole = words ? usable.filter(wording => wording.says.length === 1 || wording.symptom) : [];
    return new Map(whole.map(wording => [wording, partOf(wording, words)])
      .filter(([wording, part]) => part && !speaksAgainst(wording, text)));
  }
  function halves(shares, text) {
    const alone = [...shares].filter(([wording]) => wording.says.length === 1);
    if (Math.max(0, ...alone.map(([, part]) => part)) < number.half) return [];
    return alone.filter(([, part]) => part >= number.little).map(([wording]) => [{...wording, proof: "part"}, [text.lower]]);
  }
  function modesOfParts(shares) {
    const found = new Set([...shares].filter(([, part]) => part >= number.little).map(([wording]) => wording.mode));
    return found.size <= number.most ? found : new Set();
  }
  function weigh(proven, text) {
    const best = new Map();
    for (const [wording, said] of proven) {
      const key = `${wording.mode}|${wording.kind}`, odds = oddsOf(wording, text);
      if (odds > (best.get(key)?.odds ?? 0)) best.set(key, {odds, wording, said});
    }
    const total = 1 + number.unknown + sum([...best.values()].map(each => each.odds));
    const scores = [...best.values()].map(({odds, wording, said}) => ({
      mode: wording.mode, score: round(Math.min(odds / total, number.surest)), because: reason(wording, said, text.lastFrame), fix: wording.fix,
      error: wording.error,
    })).sort((a, b) => b.score - a.score);
    const first = scores[0];
    if (first.mode && first.score >= number.first) return {mode: first.mode, confidence: first.score, candidates: scores, known: true};
    const ofModes = sum(scores.filter(each => each.mode).map(each => each.score));
    return {mode: null, confidence: round(Math.max(0, 1 - number.unknown / total - ofModes)), candidates: scores, known: true};
  }
  function oddsOf(wording, text) {
    const share = data.proof[wording.proof], raised = text.flatRaised;
    const isLast = wording.proof !== "hint" && raised.lower && firstMatch(wording, raised);
    const isNamed = wording.releases && inText(wording.releases, text.flat.lower);
    return (isLast ? number.last : 1) * (isNamed ? number.release : 1) * share / (1 - share);
  }
  function reason(wording, said, frame) {
    const words = [...new Set(said)].map(quoted).join(" and ");
    const kind = wording.kind ? `${wording.kind}: ` : "", where = frame ? ` (${frame})` : "";
    return `${kind}${data.says[wording.proof] ?? "it says"} ${words}${where}${wording.fixed ? `; fixed upstream in ${wording.fixed}` : ""}`;
  }
  const quoted = words => `"${displayed(words)}"`;

  function ask(text, hints, parts) {
    const code = text.isDescription ? modesByCode(codeOf(text)) : new Map();
    const [sharpness, ofNone] = text.isDescription ? number.description : number.error;
    const near = nearestModes(proseOf(text));
    const odds = new Map(near.map(({id, score}) => [id, Math.exp(
      sharpness * score + number.hint * hints.has(id) + number.little_part * parts.has(id) + number.code * code.has(id))]));
    const none = odds.get(null) * Math.exp(ofNone);
    const likely = near.filter(({id}) => id).sort((a, b) => odds.get(b.id) - odds.get(a.id)).slice(0, number.most);
    const total = none + sum(likely.map(({id}) => odds.get(id)));
    const candidates = likely.map(mode => ({
      mode: mode.id, score: round(odds.get(mode.id) / total), because: likeness(mode.words(), code.get(mode.id)), fix: "", error: "",
    }));
    return {mode: null, confidence: round(none / total), candidates, known: false, isError: !text.isDescription};
  }
  const likeness = (words, code) => `${code ? `its code has ${quoted(code)}; ` : ""}its words are near: ${words.map(quoted).join(", ")}`;

  // code_patterns.py

  function modesByCode(code) {
    const found = new Map();
    for (const pattern of data.code) {
      if (found.has(pattern.mode)) continue;
      const first = codeMatch(pattern, code);
      if (first) found.set(pattern.mode, first);
    }
    return found;
  }
  function codeMatch(pattern, code) {
    if (!pattern.words.split("|").some(word => code.includes(word))) return "";
    const parts = pattern.within[0] ? [...blocks(pattern.within, code)] : [code];
    const found = parts.map(part => search(pattern.has, part)).find(Boolean);
    if (!found || (pattern.unless[0] && search(pattern.unless, code)) || (pattern.beside[0] && !search(pattern.beside, code))) return "";
    return wordsIn(found[0]).join(" ");
  }
  function* blocks([within, flags], code) {
    const names = [...code.matchAll(all(compiled.run))].flatMap(found => found.slice(1)).filter(Boolean).join("|");
    if (within.includes("RUN") && !names) return;
    const head = [within.replaceAll("RUN", names), flags], lines = code.split("\n");
    for (const [place, line] of lines.entries()) {
      if (search(head, line)) yield block(lines.slice(place, place + number.deepest));
    }
  }
  const indent = line => line.length - line.trimStart().length;
  function block(lines) {
    const depth = indent(lines[0]), taken = [lines[0]];
    let inHead = lines[0].trimStart().startsWith("@");
    for (const line of lines.slice(1)) {
      if (line.trim() && indent(line) <= depth && !inHead) break;
      inHead = inHead && !starts(compiled.function, line);
      taken.push(line);
    }
    return taken.join("\n");
  }

  // similarity.py

  const IDEA = "~";
  const stop = new Set(["", ...wordsIn(data.vocabulary.stop).map(stem)]);
  const ideas = new Map();
  for (const [name, phrases] of Object.entries(data.vocabulary.ideas)) {
    for (const phrase of phrases.split(",")) {
      const stems = wordsIn(phrase).map(stem);
      add(ideas, stems[0], [stems, IDEA + name]);
    }
  }
  function traitsOf(text) {
    const words = (text.replaceAll("'", "").match(all(compiled.word)) ?? []).map(word => word.toLowerCase());
    const stems = words.map(stem), spans = [];
    const telling = stems.map((_, place) => place).filter(place => !stop.has(stems[place]));
    stems.forEach((first, place) => {
      for (const [phrase, idea] of ideas.get(first) ?? []) {
        if (phrase.every((each, n) => stems[place + n] === each)) spans.push([idea, place, place + phrase.length]);
      }
    });
    spans.push(...telling.map(place => [stems[place], place, place + 1]));
    spans.push(...telling.slice(1).map((b, n) => [`${stems[telling[n]]} ${stems[b]}`, telling[n], b + 1]));
    return new Map(spans.map(([trait, begin, end]) => [trait, words.slice(begin, end).join(" ")]));
  }
  const norm = worth => Math.max(number.short_text, Math.hypot(...worth));

  function allTexts() {
    const worded = wordings.filter(({proof, error}) => proof !== "hint" && !error);
    return [{id: null, texts: data.none}, ...data.modes].flatMap(({id, texts}) => [
      ...texts, ...worded.filter(({mode}) => mode === id).map(({says}) => says.join(" ").replace(/[^\p{L}\p{N}_]+/gu, " ")),
    ].map(text => [id, text]));
  }
  let madeIndex;
  function index() {
    if (madeIndex) return madeIndex;
    const texts = allTexts(), holders = new Map(), traits = texts.map(([, text]) => traitsOf(text));
    traits.forEach((each, place) => each.forEach((_, trait) => add(holders, trait, place)));
    const rarity = new Map([...holders].map(([trait, places]) =>
      [trait, Math.log((traits.length + 1) / (places.length + 0.5)) * (trait.includes(" ") ? number.pair : 1)]));
    const lengths = traits.map(each => norm([...each.keys()].map(trait => rarity.get(trait))));
    const spans = new Map();
    texts.forEach(([mode], place) => add(spans, mode, place));
    return madeIndex = {holders, rarity, lengths, spans};
  }
  function nearestModes(text) {
    const {holders, rarity, lengths, spans} = index(), traits = traitsOf(text), scores = new Float64Array(lengths.length);
    const worth = new Map([...traits.keys()].map(trait => [trait, rarity.get(trait) ?? (trait.includes(" ") ? 0 : number.unseen)]));
    const length = norm([...worth.values()]);
    for (const trait of traits.keys()) {
      for (const place of holders.get(trait) ?? []) scores[place] += worth.get(trait) ** 2 / (length * lengths[place]);
    }
    return [...spans].map(([id, places]) => {
      const best = [...places].sort((a, b) => scores[b] - scores[a]);
      const score = sum(number.best.slice(0, best.length).map((part, n) => part * scores[best[n]]));
      const shared = () => [...traits.keys()].filter(trait => holders.get(trait)?.includes(best[0]));
      return {id, score, words: () => tellingWords(shared().sort((a, b) => worth.get(b) - worth.get(a)), traits)};
    }).sort((a, b) => b.score - a.score);
  }
  function tellingWords(shared, traits) {
    const words = [...new Set(shared.map(trait => traits.get(trait)))];
    return words.filter(each => !words.some(other => each !== other && other.includes(each))).slice(0, number.quoted);
  }

  // answer_text.py

  const title = mode => `${mode}: ${modes.get(mode).title}`;
  const scored = candidate => `(${candidate.score.toFixed(2)})`;
  const repair = ({error, fix, mode}) => error ? [{text: `fix: ${fix}`}, {text: "see", url: data.errors[error]}]
    : fix && !mode ? [{text: `next: ${fix}`}] : [];
  const further = ({known, isError}) => known ? [] : [{text: isError ? data.words.next_of_error : data.words.next_of_description}];
  function lines(answer) {
    const none = `${data.words.none} (${answer.confidence.toFixed(2)})`, first = answer.candidates[0];
    if (answer.mode) {
      const second = answer.candidates.slice(1, 2).filter(each => each.score >= number.runner_up);
      return [{mode: first.mode, text: scored(first)}, {text: `because ${first.because}`}, {text: `fix: ${first.fix || modes.get(first.mode).fix}`},
        ...second.flatMap(each => [each.mode ? {before: "or", mode: each.mode, text: `${scored(each)}, ${each.because}`}
          : {text: `or ${data.words.none} ${scored(each)}, ${each.because}`}, ...repair(each)])];
    }
    if (answer.known && !first.mode) {
      const perhaps = first.score < number.sure ? data.words.perhaps : "";
      return [{text: first.error ? `${none}: ${perhaps}${data.words.no_fault}` : none}, ...answer.candidates.slice(0, 2).flatMap(each => each.mode
        ? [{before: "not enough for", mode: each.mode, text: `: ${each.because}`}] : [{text: `it looks like ${each.because}`}, ...repair(each)])];
    }
    const why = answer.known ? data.words.several : data.words.no_wording;
    const asked = answer.candidates.filter(each => each.mode && each.score >= number.asked)
      .map(each => ({before: `${modes.get(each.mode).question} Then`, mode: each.mode, text: `${scored(each)}: ${each.because}`}));
    return first && first.score > answer.confidence
      ? [{before: `${why}; perhaps`, mode: first.mode, text: scored(first)}, ...asked, {text: `or ${none}`}, ...further(answer)]
      : [{text: `${why}; ${none}`}, ...asked, ...further(answer)];
  }
  return {triage, lines, title, page: mode => modes.get(mode).page};
}
if (typeof module !== "undefined") module.exports = {makeTriage};
