// Calls of the service, and small helpers that build elements without ever parsing HTML.
const $ = id => document.getElementById(id);
const wait = ms => new Promise(done => setTimeout(done, ms));

function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value; else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function report(message) {
  $("trouble").textContent = message;
  $("trouble").hidden = !message;
}

const percent = share => (100 * share).toFixed(1) + " %";
let token = sessionStorage.getItem("tenor-token") || "";
let asking = null;

function askForToken() {
  asking ||= new Promise(done => {
    $("token-form").onsubmit = () => {
      token = $("token").value.trim();
      sessionStorage.setItem("tenor-token", token);
      asking = null;
      done();
    };
    $("token-dialog").showModal();
  });
  return asking;
}

// Sends a request; asks for the token when it is missing, and tries again when the service is busy.
async function call(path, body, signal) {
  for (let attempt = 0; ; attempt++) {
    const options = {signal, headers: token ? {Authorization: "Bearer " + token} : {}};
    if (body) {
      options.method = "POST";
      options.headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(body);
    }
    const used = token;
    const answer = await fetch(path, options);
    if (answer.status === 401) {
      if (used === token) await askForToken();
    } else if (answer.status === 503 && attempt < 30) {
      await wait(1000 * Math.min(10, Number(answer.headers.get("Retry-After")) || 1));
    } else {
      const value = await answer.json().catch(() => ({error: "the answer is not JSON"}));
      if (!answer.ok) throw new Error(value.error || "the service answered " + answer.status);
      return value;
    }
  }
}

const model = call("model").catch(error => { report("The service does not answer: " + error.message); throw error; });
model.catch(() => {});

// The colour of a class: red and green for two classes, blue for the others.
function colourOf(label, labels) {
  return labels.length !== 2 ? "other" : label === labels[1] ? "good" : "bad";
}
