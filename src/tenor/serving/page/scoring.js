// A CSV file: choose the column, score it in chunks, draw the result and offer it as a file.
{
  const MOST_BYTES = 200e6, CHUNK_BYTES = 300000, OWN = ["label", "probability"];
  let table = [], name = "", running = null, scored = [];
  const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;

  const ready = () => {
    $("stop").hidden = $("progress").hidden = true;
    $("score").disabled = false;
  };

  const read = async file => {
    running?.abort();  // of the file before
    running = null;
    table = [];
    ready();
    report("");
    $("csv-choice").hidden = $("csv-result").hidden = true;
    if (file.size > MOST_BYTES) return report("The file has more than 200 MB. Use `tenor predict` for it.");
    const text = decode(new Uint8Array(await file.arrayBuffer()));
    name = file.name;
    $("csv-note").textContent = "";
    if (text.includes("\0")) return report(`${name} is not a text file. Save the table as CSV, and choose that file.`);
    table = parseCsv(text);
    if (table.length < 2) {
      return report(`${name} has no rows. It needs a line with column names and at least one row.`);
    }
    $("csv-name").textContent = `${name}: ${count(table.length - 1, "row")}`;
    $("column").replaceChildren(...table[0].map((title, place) => make("option", {value: place}, title || `column ${place + 1}`)));
    $("column").value = guessColumn(table);
    $("csv-choice").hidden = false;
    $("csv-note").textContent = hasText(table) ? "" : "No column seems to contain text. Choose the right column, or another file.";
  };

  // Chunks that stay below the limits of the service.
  function* chunks(texts, limits) {
    const most = Math.min(CHUNK_BYTES, limits.max_body_kb * 1024 - 100), encoder = new TextEncoder();
    let chunk = [], bytes = 0;
    for (const text of texts) {
      const cut = text.length > limits.max_text_length ? [...text].slice(0, limits.max_text_length).join("") : text;
      const size = encoder.encode(JSON.stringify(cut)).length + 1;
      if (chunk.length && (chunk.length >= limits.max_texts || bytes + size > most)) {
        yield chunk;
        chunk = [];
        bytes = 0;
      }
      chunk.push(cut);
      bytes += size;
    }
    if (chunk.length) yield chunk;
  }

  const score = async () => {
    const {labels, limits} = await model;
    const own = table, place = Number($("column").value), texts = own.slice(1).map(row => row[place] || "");
    const aborter = running = new AbortController();
    scored = [];
    $("stop").hidden = $("progress").hidden = false;
    $("score").disabled = true;
    const began = performance.now();
    try {
      for (const chunk of chunks(texts, limits)) {
        const answer = await call("predict", {texts: chunk, probabilities: true}, aborter.signal);
        if (own !== table) return;
        scored.push(...answer.predictions);
        $("progress").value = scored.length / texts.length;
        const rate = scored.length / (performance.now() - began) * 1000, left = (texts.length - scored.length) / rate;
        $("csv-note").textContent = `${scored.length.toLocaleString("en")} of ${texts.length.toLocaleString("en")} rows, `
          + `${Math.round(rate).toLocaleString("en")} rows/s, ${Math.ceil(left)} s left`;
      }
      $("csv-note").textContent = `All ${scored.length.toLocaleString("en")} rows are scored.`;
    } catch (error) {
      if (own !== table) return;  // another file was chosen meanwhile
      const how = error.name === "AbortError" ? "Stopped" : "Failed: " + error.message;
      $("csv-note").textContent = `${how} after ${count(scored.length, "row")}.`;
    } finally {
      if (running === aborter) ready();
    }
    if (scored.length) show(labels);
  };

  const show = labels => {
    const counts = labels.map(label => scored.filter(prediction => prediction.label === label).length);
    $("chart").replaceChildren(make("h2", {}, "Predicted classes"), bars(labels, counts), make("h2", {}, "Probabilities"),
      histogram(labels));
    const rows = table.slice(1, 1 + Math.min(20, scored.length)).map(whole);
    $("preview").replaceChildren(make("thead", {}, make("tr", {}, ...titles().map(title => make("th", {scope: "col"}, title)))),
      make("tbody", {}, ...rows.map(row => make("tr", {}, ...row.map(cell => make("td", {}, cell.slice(0, 200)))))));
    $("csv-result").hidden = false;
  };

  // A column that is called like one of ours is renamed, as `tenor predict --keep-columns` does.
  const titles = () => [...table[0].map(title => OWN.includes(title) ? "original_" + title : title), ...OWN];
  const whole = (row, place) => [...table[0].map((_, column) => row[column] || ""), scored[place].label,
    scored[place].probability.toFixed(4)];

  const bars = (labels, counts) => {
    const total = scored.length, height = 34 * labels.length;
    const words = labels.map((label, place) => `${label}: ${counts[place]} (${percent(counts[place] / total)})`);
    const svg = draw("svg", {viewBox: `0 0 360 ${height}`, role: "img", "aria-label": words.join(", "), "data-counts": counts});
    labels.forEach((label, place) => svg.append(
      draw("rect", {x: 0, y: place * 34 + 20, height: 10, width: Math.max(1, 360 * counts[place] / total),
        class: "bar-" + colourOf(label, labels)}),
      draw("text", {x: 0, y: place * 34 + 14}, words[place])));
    return svg;
  };

  // How many rows have which probability: of the second of two classes, else of the predicted class.
  const histogram = labels => {
    const bins = Array(20).fill(0), two = labels.length === 2;
    for (const {probability, probabilities} of scored) {
      const value = two ? probabilities[labels[1]] : probability;
      bins[Math.min(19, Math.floor(value * 20))]++;
    }
    const most = Math.max(...bins);
    const words = `Rows by the probability of ${two ? labels[1] : "the predicted class"}`;
    const svg = draw("svg", {viewBox: "0 0 360 170", role: "img", "aria-label": words});
    bins.forEach((count, place) => svg.append(draw("rect", {x: place * 18 + 1, width: 16, y: 130 - 120 * count / most,
      height: 120 * count / most, class: two ? (place < 10 ? "bar-bad" : "bar-good") : "bar-other"})));
    svg.append(draw("line", {x1: 0, x2: 360, y1: 130, y2: 130, class: "axis"}), draw("text", {x: 0, y: 146}, "0"),
      draw("text", {x: 360, y: 146, "text-anchor": "end"}, "1"), draw("text", {x: 180, y: 164, "text-anchor": "middle"}, words));
    return svg;
  };

  const download = () => {
    const text = writeCsv([titles(), ...table.slice(1, scored.length + 1).map(whole)]);
    const link = make("a", {download: name.replace(/\.\w+$/, "") + "-scored.csv",
      href: URL.createObjectURL(new Blob(["\ufeff" + text], {type: "text/csv"}))});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  $("file").onchange = () => $("file").files[0] && read($("file").files[0]);
  $("score").onclick = score;
  $("stop").onclick = () => running?.abort();
  $("download").onclick = download;
  const drop = $("drop");
  drop.ondragover = event => { event.preventDefault(); drop.classList.add("over"); };
  drop.ondragleave = () => drop.classList.remove("over");
  drop.ondrop = event => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files[0]) read(event.dataTransfer.files[0]);
  };
}
