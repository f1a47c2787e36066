// Search and filters over the table of items. All text is in the page without this.
(() => {
  const tools = document.querySelector(".tools");
  const items = [...document.querySelectorAll(".item")];
  const [text, state, kind] = ["find", "state", "kind"].map((id) => document.getElementById(id));
  const count = tools.querySelector("output");
  const texts = new Map();

  const folded = (string) => string.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();
  const textOf = (item) => {
    if (!texts.has(item)) texts.set(item, folded(`${item.dataset.id} ${item.textContent}`));
    return texts.get(item);
  };

  const apply = () => {
    const words = folded(text.value).split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const item of items) {
      const fits =
        (!state.value || item.dataset.state === state.value) &&
        (!kind.value || item.dataset.kind === kind.value) &&
        words.every((word) => textOf(item).includes(word));
      item.hidden = !fits;
      shown += fits;
    }
    count.textContent =
      shown === items.length ? `All ${shown} items.` : `${shown} of ${items.length} items.`;
  };

  const unfold = () => {
    const item = document.getElementById(location.hash.slice(1));
    if (!item?.classList.contains("item")) return;
    if (item.hidden) {
      for (const field of [text, state, kind]) field.value = "";
      apply();
    }
    item.open = true;
    item.scrollIntoView();
  };

  let waiting;
  text.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 120);
  });
  state.addEventListener("change", apply);
  kind.addEventListener("change", apply);
  tools.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("hashchange", unfold);
  tools.hidden = false;
  apply();
  unfold();
})();
