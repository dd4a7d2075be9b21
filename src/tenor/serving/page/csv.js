// Reads and writes CSV in the browser: quotes, line breaks inside quotes, and commas, semicolons or tabs.
function parseCsv(text) {
  const first = text.slice(0, 20000).split(/\r?\n/, 1)[0];
  const delimiter = [",", ";", "\t"].map(mark => [first.split(mark).length, mark]).sort((a, b) => b[0] - a[0])[0][1];
  const rows = [];
  let row = [], cell = "", quoted = false, place = 0;
  const endRow = () => {
    row.push(cell);
    if (row.length > 1 || row[0] !== "") rows.push(row);
    row = [];
    cell = "";
  };
  while (place < text.length) {
    const mark = text[place];
    if (quoted) {
      const end = text.indexOf('"', place);
      if (end < 0) { cell += text.slice(place); break; }
      cell += text.slice(place, end);
      quoted = text[end + 1] === '"';
      if (quoted) cell += '"';
      place = end + (quoted ? 2 : 1);
    } else if (mark === '"' && cell === "") {
      quoted = true;
      place++;
    } else if (mark === delimiter) {
      row.push(cell);
      cell = "";
      place++;
    } else if (mark === "\n" || mark === "\r") {
      endRow();
      place += mark === "\r" && text[place + 1] === "\n" ? 2 : 1;
    } else {
      let end = place + 1;
      while (end < text.length && text[end] !== delimiter && text[end] !== "\n" && text[end] !== "\r") end++;
      cell += text.slice(place, end);
      place = end;
    }
  }
  if (cell !== "" || row.length) endRow();
  return rows;
}

const csvCell = value => /[",;\t\r\n]/.test(value) ? '"' + value.replaceAll('"', '""') + '"' : value;
const writeCsv = rows => rows.map(row => row.map(csvCell).join(",") + "\r\n").join("");

// UTF-8, or UTF-16 with its mark; what is neither is taken as Windows-1252.
function decode(bytes) {
  const utf16 = bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe && bytes[1] === 0xff ? "utf-16be" : "";
  if (utf16) return new TextDecoder(utf16).decode(bytes);
  try {
    return new TextDecoder("utf-8", {fatal: true}).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

// Whether a cell of the first rows has two words; a file of numbers has none.
const hasText = rows => rows.slice(1, 50).some(row => row.some(cell => /\p{L}\P{L}+\p{L}|\p{Lo}/u.test(cell)));

// The column that most probably holds the text: by its name, else the one with the longest cells.
function guessColumn(rows) {
  const names = ["reviewtext", "review_text", "text", "review", "review_body", "body", "comment", "summary", "content"];
  const head = rows[0].map(name => name.trim().toLowerCase());
  const known = names.map(name => head.indexOf(name)).find(place => place >= 0);
  if (known !== undefined) return known;
  const sample = rows.slice(1, 50);
  const lengths = head.map((_, place) => sample.reduce((sum, row) => sum + (row[place] || "").length, 0));
  return lengths.indexOf(Math.max(...lengths));
}
