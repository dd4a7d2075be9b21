// What is known about the model: its card, its calibration and its behaviour tests.
{
  const inline = line => line.split(/(`[^`]*`)/).map(part =>
    part.length > 1 && part.startsWith("`") ? make("code", {}, part.slice(1, -1)) : part.replace(/\*\*/g, ""));

  // The Markdown that model cards use: headings, lists, tables, code and paragraphs.
  const markdown = text => {
    const found = [];
    const cells = line => line.split("|").slice(1, -1).map(cell => cell.trim());
    const lines = text.split("\n");
    for (let place = 0; place < lines.length; place++) {
      const line = lines[place], heading = line.match(/^(#{1,6}) (.*)/);
      if (heading) found.push(make(heading[1].length < 2 ? "h2" : "h3", {}, ...inline(heading[2])));
      else if (line.startsWith("```") || line.startsWith("    ")) {
        const fenced = line.startsWith("```"), code = fenced ? [] : [line.slice(4)];
        while (++place < lines.length && (fenced ? !lines[place].startsWith("```") : lines[place].startsWith("    "))) {
          code.push(fenced ? lines[place] : lines[place].slice(4));
        }
        if (!fenced) place--;
        found.push(make("pre", {}, make("code", {}, code.join("\n"))));
      } else if (line.startsWith("|")) {
        const rows = [];
        for (; place < lines.length && lines[place].startsWith("|"); place++) rows.push(lines[place]);
        place--;
        const [head, ...rest] = rows.filter(row => !/^[|\s:-]+$/.test(row));
        if (head) found.push(make("div", {className: "scroll"}, make("table", {},
          make("thead", {}, make("tr", {}, ...cells(head).map(cell => make("th", {scope: "col"}, cell)))),
          make("tbody", {}, ...rest.map(row => make("tr", {}, ...cells(row).map(cell => make("td", {}, ...inline(cell)))))))));
      } else if (line.startsWith("- ")) {
        const list = make("ul");
        for (; place < lines.length && /^(- |  )/.test(lines[place]); place++) {
          if (lines[place].startsWith("- ")) list.append(make("li", {}, ...inline(lines[place].slice(2))));
          else list.lastChild?.append(" ", ...inline(lines[place].trim()));
        }
        place--;
        found.push(list);
      } else if (line.trim()) {
        const words = [line];
        while (place + 1 < lines.length && /^[^#|\-`\s]/.test(lines[place + 1])) words.push(lines[++place]);
        found.push(make("p", {}, ...inline(words.join(" "))));
      }
    }
    return found;
  };

  const number = value => value === null ? "–" : value.toLocaleString("en", {maximumFractionDigits: 4});
  const rowsOf = (head, rows) => make("div", {className: "scroll"}, make("table", {},
    make("thead", {}, make("tr", {}, ...head.map(cell => make("th", {scope: "col"}, cell)))),
    make("tbody", {}, ...rows.map(row => make("tr", {}, ...row.map(cell => make("td", {}, cell)))))));

  const curve = (bins, words) => {
    const x = value => 40 + 340 * value, y = value => 360 - 340 * value;
    const svg = draw("svg", {viewBox: "0 0 420 400", role: "img", "aria-label": words, class: "square"});
    svg.append(draw("line", {x1: 40, x2: 380, y1: 360, y2: 360, class: "axis"}), draw("line", {x1: 40, x2: 40, y1: 20, y2: 360, class: "axis"}),
      draw("line", {x1: x(0), y1: y(0), x2: x(1), y2: y(1), class: "ideal"}),
      draw("polyline", {points: bins.map(bin => `${x(bin.probability)},${y(bin.share)}`).join(" "), class: "curve"}));
    const most = Math.max(...bins.map(bin => bin.rows));
    for (const bin of bins) {
      const dot = draw("circle", {cx: x(bin.probability), cy: y(bin.share), r: 3 + 5 * Math.sqrt(bin.rows / most), class: "bar-other"});
      dot.append(draw("title", {}, `${bin.rows} rows with a mean probability of ${percent(bin.probability)}: ${percent(bin.share)} came true`));
      svg.append(dot);
    }
    for (const value of [0, 0.5, 1]) svg.append(draw("text", {x: x(value), y: 378, "text-anchor": "middle"}, String(value)),
      draw("text", {x: 34, y: y(value) + 4, "text-anchor": "end"}, String(value)));
    svg.append(draw("text", {x: 210, y: 396, "text-anchor": "middle"}, "probability that the model gives"));
    return svg;
  };

  const showCalibration = (metrics, labels) => {
    const place = $("calibration");
    if (!metrics) return place.append(make("p", {}, ...inline("Not measured: this run has no metrics. Train it to the end with `tenor train`.")));
    const what = labels.length === 2 ? labels[1] : "the predicted class";
    place.append(make("h2", {}, "Metrics of the " + metrics.split + " split"), rowsOf(["metric", "value"], [
      ["accuracy", number(metrics.accuracy)], ["accuracy of the majority baseline", number(metrics.majority_accuracy)],
      ["macro-F1", number(metrics.f1_macro)], ["AUC", number(metrics.auc)],
      ["expected calibration error", number(metrics.calibration_error)], ["rows", number(metrics.rows)]]),
      make("h2", {}, "Reliability"));
    if (!metrics.reliability.length) return place.append(make("p", {}, "Not measured: this run has no reliability curve."));
    place.append(make("p", {className: "faint"}, `${labels.length === 2 ? "The share of rows that really are " + labels[1] : "The share of rows whose predicted class is right"}, by the probability that the model gives. A calibrated model follows the dashed line.`),
      curve(metrics.reliability, `Share that came true by probability of ${what}`));
  };

  const showBehaviour = kinds => {
    const place = $("behaviour");
    if (!kinds) return place.append(make("p", {}, ...inline("Not measured: this run has no behaviour tests. `tenor evaluate --behaviour` runs them.")));
    place.append(make("h2", {}, "Behaviour tests"), rowsOf(["kind", "passed", "cases", "share"], Object.entries(kinds).map(
      ([kind, {passed, cases, hard}]) => [kind + (hard ? " (hard)" : ""), number(passed), number(cases), percent(passed / cases)])));
  };

  model.then(about => {
    $("about").textContent = `Classes: ${about.labels.join(", ")}. Model ${about.model}.`;
    $("card").append(...(about.card ? markdown(about.card) : [make("p", {}, "This run has no model card.")]));
    showCalibration(about.metrics, about.labels);
    showBehaviour(about.behaviour);
  }).catch(() => {});
}
