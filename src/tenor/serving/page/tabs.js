// Tabs that work with the arrow keys, Home and End; the address keeps the open tab.
{
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const open = (tab, focus) => {
    for (const other of tabs) {
      const chosen = other === tab;
      other.setAttribute("aria-selected", chosen);
      other.tabIndex = chosen ? 0 : -1;
      $(other.getAttribute("aria-controls")).hidden = !chosen;
    }
    history.replaceState(null, "", "#" + tab.id.replace("tab-", ""));
    if (focus) tab.focus();
  };
  tabs.forEach((tab, place) => {
    tab.onclick = () => open(tab);
    tab.onkeydown = event => {
      const next = {ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: tabs.length - 1}[event.key];
      if (next === undefined) return;
      event.preventDefault();
      open(tabs[(next + tabs.length) % tabs.length], true);
    };
  });
  open($("tab-" + location.hash.slice(1)) || tabs[0]);
}
