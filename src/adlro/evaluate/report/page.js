"use strict";
(() => {
  const root = document.documentElement;
  const NARROW = 700; // px: below, legends go under their chart
  const LEGEND_LINE = 19; // px

  function colour(name) {
    return getComputedStyle(root).getPropertyValue(name).trim();
  }

  // What of a figure depends on the page being light or dark.
  function paint(layout) {
    const changes = {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      "font.color": colour("--ink"),
      "hoverlabel.bgcolor": colour("--panel"),
      "hoverlabel.font.color": colour("--ink"),
      "hoverlabel.bordercolor": colour("--line"),
      "modebar.bgcolor": "rgba(0,0,0,0)",
      "modebar.color": colour("--line"),
      "modebar.activecolor": colour("--soft"),
    };
    for (const axis of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) {
      changes[axis + ".gridcolor"] = colour("--grid");
      changes[axis + ".linecolor"] = colour("--line");
      changes[axis + ".tickcolor"] = colour("--line");
    }
    return changes;
  }

  function set(target, path, value) {
    const keys = path.split(".");
    const last = keys.pop();
    let place = target;
    for (const key of keys) place = place[key] = place[key] || {};
    place[last] = value;
  }

  // A legend beside the chart where there is room, else under it, with the height that it needs.
  function fit(box, data, layout) {
    if (box.clientWidth < NARROW) {
      const axes = Object.values(layout).filter((part) => part && part.dtick === "D2");
      for (const axis of axes) axis.dtick = 1; // powers of ten only
    }
    const shown = data.filter((trace) => trace.visible !== false && trace.showlegend !== false);
    const beside = layout.legend && layout.legend.orientation !== "h";
    if (!beside || layout.showlegend === false || box.clientWidth >= NARROW || shown.length < 2) {
      return;
    }
    const lines = Math.ceil(shown.length / Math.max(Math.floor(box.clientWidth / 170), 1));
    layout.height += lines * LEGEND_LINE + 20;
    layout.legend = { ...layout.legend, orientation: "h", yref: "container", y: 0, yanchor: "bottom" };
    layout.margin = { ...layout.margin, b: 60 + lines * LEGEND_LINE };
  }

  function draw(box) {
    if (box.drawn) return;
    box.drawn = true;
    const figure = JSON.parse(document.getElementById(box.dataset.figure).textContent);
    for (const [path, value] of Object.entries(paint(figure.layout))) set(figure.layout, path, value);
    fit(box, figure.data, figure.layout);
    const config = {
      responsive: true,
      displaylogo: false,
      modeBarButtons: [["zoom2d", "pan2d", "resetScale2d", "toImage"]],
    };
    Plotly.newPlot(box, figure.data, figure.layout, config).then(() => choose(box));
  }

  function select(box) {
    return document.querySelector(`select[data-for="${box.dataset.figure}"]`);
  }

  function choose(box) {
    const menu = select(box);
    if (!menu || !box.drawn) return;
    const wanted = menu.selectedOptions[0].textContent;
    const visible = box.data.map((trace) => trace.meta === undefined || trace.meta === wanted);
    Plotly.update(box, { visible }, { ...(box.layout.meta || {})[wanted] });
  }

  function sort(table, column, button) {
    const heading = button.closest("th");
    const upward = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", upward ? "ascending" : "descending");
    const isWords = heading.classList.contains("words");
    const key = (row) => {
      const cell = row.cells[column];
      return isWords ? cell.textContent : parseFloat(cell.dataset.order);
    };
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const x = key(a), y = key(b);
      if (!isWords && (isNaN(x) || isNaN(y))) return isNaN(x) - isNaN(y);
      const order = isWords ? x.localeCompare(y, undefined, { numeric: true }) : x - y;
      return upward ? order : -order;
    });
    table.tBodies[0].append(...rows);
  }

  const boxes = [...document.querySelectorAll(".chart")];
  const dark = matchMedia("(prefers-color-scheme: dark)");

  function theme(name) {
    root.dataset.theme = name;
    for (const box of boxes) if (box.drawn) Plotly.relayout(box, paint(box.layout));
  }

  theme(dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => theme(dark.matches ? "dark" : "light"));
  document.querySelector(".theme").addEventListener("click", () => {
    theme(root.dataset.theme === "dark" ? "light" : "dark");
  });
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((cell, column) => {
      const button = cell.querySelector("button");
      button.addEventListener("click", () => sort(table, column, button));
    });
  }
  for (const box of boxes) {
    const menu = select(box);
    if (menu) menu.addEventListener("change", () => choose(box));
  }

  // Charts are drawn when they come near the screen: the page opens at once.
  const watcher = new IntersectionObserver(
    (seen) => seen.filter((entry) => entry.isIntersecting).forEach((entry) => draw(entry.target)),
    { rootMargin: "800px" },
  );
  boxes.forEach((box) => watcher.observe(box));
  addEventListener("beforeprint", () => boxes.forEach(draw));
})();
