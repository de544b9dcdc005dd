// Answers each text of a list as the site does: node site_triage.js TRIAGE.js < [{"data": ..., "texts": [...]}, ...]
const {makeTriage} = require(process.argv[2]);
const questions = JSON.parse(require("fs").readFileSync(0, "utf8"));
const answers = questions.map(({data, texts}) => {
  const {triage, lines} = makeTriage(data);
  return texts.map(text => {
    const answer = triage(text);
    return {...answer, lines: lines(answer)};
  });
});
process.stdout.write(JSON.stringify(answers));
