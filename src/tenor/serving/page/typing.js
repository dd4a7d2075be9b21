// Reviews that are typed or pasted: predicted and explained after a short pause.
{
  const PAUSE = 200;
  let timer = 0, running = null, wanted = "";

  const tinted = (text, prediction, labels) => {
    const pieces = prediction.explanation || [];
    const most = Math.max(0.05, ...pieces.map(piece => Math.abs(piece.contribution)));
    const characters = [...text];  // the service counts code points
    const line = make("p", {className: "words"});
    let place = 0;
    for (const piece of pieces) {
      const supports = piece.contribution > 0, share = Math.abs(piece.contribution) / most;
      const other = labels.length === 2 ? labels.find(label => label !== prediction.label) : null;
      const colour = supports ? colourOf(prediction.label, labels) : other ? colourOf(other, labels) : "bad";
      line.append(characters.slice(place, piece.start).join(""));
      const words = characters.slice(piece.start, piece.end).join("");
      const title = `${supports ? "supports" : "speaks against"} ${prediction.label}: ${piece.contribution.toFixed(2)}`;
      const tint = share > 0.1 ? `${colour} ${supports ? "for" : "against"} t${Math.ceil(share * 4)}` : "";
      line.append(make("mark", {className: tint, title}, words));
      place = piece.end;
    }
    line.append(characters.slice(place).join(""));
    return line;
  };

  const show = (texts, answer, labels) => {
    $("results").replaceChildren(...answer.predictions.map((prediction, place) => make("div", {className: "review"},
      make("p", {className: "verdict"},
        make("strong", {}, prediction.label),
        make("meter", {min: 0, max: 1, value: prediction.probability, ariaLabel: "probability",
          className: colourOf(prediction.label, labels)}),
        make("span", {}, percent(prediction.probability))),
      tinted(texts[place], prediction, labels))));
    $("legend").textContent = "Underlined words support the label; dotted words speak against it. Stronger colour counts more.";
    $("legend").hidden = false;
  };

  const update = async () => {
    const {labels, limits} = await model;
    const lines = wanted.split("\n").map(line => line.trim()).filter(Boolean);
    const texts = lines.slice(0, limits.max_explained).map(line => [...line].slice(0, limits.max_text_length).join(""));
    running?.abort();
    if (!texts.length) {
      $("results").replaceChildren();
      $("legend").hidden = true;
      $("typing-note").textContent = "Results appear while you type.";
      return;
    }
    running = new AbortController();
    try {
      const answer = await call("predict", {texts, explain: true}, running.signal);
      show(texts, answer, labels);
      const left = lines.length - texts.length;
      $("typing-note").textContent = left ? `The first ${texts.length} of ${lines.length} reviews. For more, use a CSV file.`
        : texts.length === 1 ? "1 review" : texts.length + " reviews";
      report("");
    } catch (error) {
      if (error.name !== "AbortError") report(error.message);
    }
  };

  $("texts").oninput = () => {
    wanted = $("texts").value;
    clearTimeout(timer);
    timer = setTimeout(update, PAUSE);
  };
}
