// Reads a JSON array of texts, writes the array of their syntax trees.
const { parse } = require(require.resolve("discord-markdown-parser", { paths: [process.argv[2]] }));
const texts = JSON.parse(require("fs").readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(texts.map((text) => parse(text, "extended"))));
