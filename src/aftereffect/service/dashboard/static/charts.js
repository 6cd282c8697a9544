/* Draws the charts with plotly from the answers of the REST API: the experiment, its rounds column by column, and what
   they say. Colours are read from the style sheet, so that charts follow the colour scheme. Everything here is also in
   the page as text or as a table.

       round   1 2 3 4 5 6 7 8 9
       A       ░ ░ ▒ ▒ █ █ █•          ░ wash-in  ▒ played, not measured  █ measured  • update
       B                     ░ ░                                                                */
"use strict";

(() => {
  const place = document.getElementById("charts");
  if (!place || !window.Plotly) return;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const armColour = (number) => colour(`--arm-${number}`);
  const narrow = () => window.innerWidth < 640;
  // Names are escaped: plotly would read <b> in them as markup. Our own texts use line breaks only: plotly turns other
  // markup into style attributes, which the content security policy forbids.
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const short = (text, length) => plain(text.length > length ? `${text.slice(0, length - 1)}…` : text);
  const figure = (value) => value === null ? "none" : value.toLocaleString("en", { maximumSignificantDigits: 6 });

  const layout = (further) => {
    const axis = {
      gridcolor: colour("--line"), zerolinecolor: colour("--line"), linecolor: colour("--line"),
      tickcolor: colour("--line"), automargin: true, fixedrange: true, separatethousands: true, exponentformat: "none",
    };
    const base = {
      margin: { l: 8, r: 8, t: 8, b: 8 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: colour("--soft") },
      hoverlabel: { bgcolor: colour("--card"), bordercolor: colour("--edge"), font: { color: colour("--ink") }, align: "left" },
      legend: { orientation: "h", x: 0, y: 1.02, xanchor: "left", yanchor: "bottom", bgcolor: "rgba(0,0,0,0)" },
      hovermode: "closest", dragmode: false, showlegend: false,
    };
    const merged = { ...base, ...further };
    merged.xaxis = { ...axis, title: { text: "round", standoff: 6, font: { size: 13 } }, tickformat: ",d", showgrid: false, zeroline: false, ...further.xaxis };
    merged.yaxis = { ...axis, ...further.yaxis };
    return merged;
  };

  const draw = (id, traces, further, words) => {
    const element = document.getElementById(id);
    element.setAttribute("role", "img");
    element.setAttribute("aria-label", words);
    // On a phone the legend takes a line per entry above the chart, so the chart is made higher.
    const entries = traces.filter((trace) => trace.name).length;
    if (further.showlegend) element.style.height = narrow() ? `${15 + 1.35 * entries}rem` : "";
    return Plotly.react(element, traces, layout(further), { displayModeBar: false, responsive: true, doubleClick: false });
  };

  // All charts of a page show the same rounds. If each round has a date of its own, the ticks are dates, as many as fit
  // into the chart with this id; else they are rounds, and if these are few, each one gets a tick.
  const rounds = (data, id) => {
    const first = data.totals[0][0], last = data.totals.at(-1)[0];
    const axis = { range: [first - 0.7, last + 0.9], ...(last - first < 12 ? { dtick: 1, tick0: 1 } : {}) };
    const days = data.totals.filter((row, i) => row[4] && row[4] !== data.totals[i - 1]?.[4]);
    if (days.length < data.totals.length) return axis;
    const fit = Math.max(2, Math.floor(document.getElementById(id).clientWidth / 110));
    const step = Math.ceil(days.length / fit);
    const ticks = days.filter((_, i) => i % step === 0);
    const words = (date, i) => {
      const [year, month, day] = date.split("-");
      const name = new Date(Date.UTC(2000, month - 1, 1)).toLocaleString("en", { month: "short", timeZone: "UTC" });
      return `${Number(day)} ${name}${i === 0 || ticks[i - 1][4].slice(0, 4) !== year ? `<br>${year}` : ""}`;
    };
    return { ...axis, tickvals: ticks.map((row) => row[0]), ticktext: ticks.map((row, i) => words(row[4], i)), title: { text: "" } };
  };

  const dated = (data, round) => {
    const date = data.totals[round - data.totals[0][0]]?.[4];
    return date ? `round ${round}, ${date}` : `round ${round}`;
  };

  const COLOURS = 8, LANES = 30;
  const colourOf = (view, arm) => Math.min(view.arms.indexOf(arm), COLOURS);
  const counts = (row) => row.status === "reported" || row.status === "clipped";
  // The player of the paper alone does not learn from every total.
  const partOf = (view) => (row) => (view.player !== "paper" || row.measured ? "measured" : row.washin ? "wash-in" : "played");

  // A lane for each arm that one unit played, the rarest in one lane together; a bar for each part of each block.
  const lanesOf = (view, rows) => {
    const plays = new Map();
    rows.forEach((row) => plays.set(row.arm, (plays.get(row.arm) || 0) + 1));
    const kept = [...plays.keys()].sort((one, other) => plays.get(other) - plays.get(one)).slice(0, LANES);
    const lanes = view.arms.filter((arm) => kept.includes(arm)).map((arm) => ({ name: arm, colour: colourOf(view, arm), rounds: plays.get(arm) }));
    if (plays.size > kept.length) lanes.push({ name: "other arms", colour: COLOURS, rounds: rows.length - lanes.reduce((sum, lane) => sum + lane.rounds, 0) });
    const part = partOf(view);
    const laneOf = (arm) => (kept.includes(arm) ? lanes.findIndex((lane) => lane.name === arm) : lanes.length - 1);
    const bars = [];
    rows.forEach((row, i) => {
      const before = rows[i - 1];
      const same = before && before.arm === row.arm && before.block === row.block && part(before) === part(row);
      if (same) bars.at(-1)[3] = row.round;
      else bars.push([laneOf(row.arm), part(row), row.round, row.round]);
    });
    const updates = view.player === "paper" ? rows.filter((row) => row.update).map((row) => [row.round, laneOf(row.arm)]) : [];
    return { lanes, bars, updates, totals: rows.map((row) => [row.round, laneOf(row.arm), row.total, row.status, row.date]) };
  };

  // The sum of all totals after each round; and that of an equal split, which has the same totals without what the arms
  // that were played have brought more than the mean of the arms. A clipped total counts as the nearest possible one.
  const outcomeOf = (view, learned, rows) => {
    const parts = (view.max_delay || 0) + 1, least = parts * Math.min(view.low, 0), most = parts * Math.max(view.high, 0);
    const counted = (row) => (!counts(row) ? 0 : row.status === "clipped" ? Math.min(Math.max(row.total, least), most) : row.total);
    let sum = view.sum_of_totals - rows.reduce((all, row) => all + counted(row), 0);
    const plays = { ...view.plays }, found = { rounds: [], own: [], equal: [], low: [], high: [] };
    rows.forEach((row) => { plays[row.arm] -= 1; });
    let told = false;
    rows.forEach((row, i) => {
      sum += counted(row);
      plays[row.arm] += 1;
      told ||= row.status !== "open";
      if (!told || rows[i + 1]?.round === row.round) return;
      told = false;
      const mean = Object.values(plays).reduce((all, each) => all + each, 0) / view.arms.length;
      let more = 0, margin = 0;
      learned.arms.forEach(({ arm, effect: [value, low, high] }) => {
        more += (plays[arm] - mean) * value;
        margin += Math.abs(plays[arm] - mean) * (high - low) / 2;
      });
      for (const [name, value] of Object.entries({ rounds: row.round, own: sum, equal: sum - more, low: sum - more - margin, high: sum - more + margin })) found[name].push(value);
    });
    return learned.arms.length ? found : { ...found, equal: null };
  };

  const prepared = (view, series, learned, unit) => {
    const names = Object.keys(series).filter((name) => name !== "arms" && Array.isArray(series[name]));
    const rows = series.round.map((_, i) => Object.fromEntries(names.map((name) => [name, series[name][i]])));
    const lags = learned.arms.slice(0, COLOURS).map((each) => ({ name: each.arm, colour: colourOf(view, each.arm), bands: each.by_lag }));
    return { ...lanesOf(view, rows.filter((row) => row.unit === unit)), lags, outcome: outcomeOf(view, learned, rows) };
  };

  const OPACITY = { "wash-in": 0.25, played: 0.55, measured: 1 };

  const timeline = (data) => {
    const lanes = data.lanes.length;
    const traces = [];
    for (const part of ["wash-in", "played", "measured"]) {
      const bars = data.bars.filter((bar) => bar[1] === part);
      traces.push({
        type: "bar", orientation: "h", width: 0.56, hoverinfo: "text",
        y: bars.map((bar) => bar[0]), base: bars.map((bar) => bar[2] - 0.5), x: bars.map((bar) => bar[3] - bar[2] + 1),
        marker: { color: bars.map((bar) => armColour(data.lanes[bar[0]].colour)), opacity: OPACITY[part], line: { width: 0 } },
        hovertext: bars.map((bar) => `${plain(data.lanes[bar[0]].name)}<br>rounds ${bar[2]} to ${bar[3]}, ${part}`),
        textposition: "none",
      });
    }
    traces.push({
      type: "scatter", mode: "markers", hoverinfo: "text",
      x: data.updates.map((mark) => mark[0] + 0.5), y: data.updates.map((mark) => mark[1]),
      marker: { symbol: "diamond", size: narrow() ? 5 : 8, color: colour("--ink"), line: { width: 1, color: colour("--card") } },
      hovertext: data.updates.map((mark) => `update after ${dated(data, mark[0])}`),
    });
    const names = data.lanes.map((arm) => short(arm.name, narrow() ? 12 : 28));
    const element = document.getElementById("chart-timeline");
    element.style.height = `${72 + (lanes > 12 ? 22 : 44) * Math.max(lanes, 2)}px`;
    return draw("chart-timeline", traces, {
      barmode: "overlay", xaxis: rounds(data, "chart-timeline"),
      yaxis: { tickvals: names.map((_, i) => i), ticktext: names, range: [lanes - 0.4, -0.6], showgrid: false, zeroline: false, tickfont: { color: colour("--ink") } },
    }, `Rounds ${data.totals[0][0]} to ${data.totals.at(-1)[0]}: ${data.lanes.map((lane) => `${lane.name} ${lane.rounds}`).join("; ")}`);
  };

  const totals = (data) => {
    const counted = (row) => counts({ status: row[3] });
    const told = data.totals.filter(counted);
    const values = told.map((row) => row[2]);
    const most = Math.max(0, ...values), least = Math.min(0, ...values), room = 0.06 * (most - least || 1);
    const traces = [{
      type: "scatter", mode: "lines", x: data.totals.map((row) => row[0]),
      y: data.totals.map((row) => (counted(row) ? row[2] : null)),
      line: { color: colour("--line"), width: 1.5 }, hoverinfo: "skip", showlegend: false,
    }];
    data.lanes.forEach((arm, i) => {
      const rows = told.filter((row) => row[1] === i);
      if (!rows.length) return;
      traces.push({
        type: "scatter", mode: "markers", name: short(arm.name, 28), x: rows.map((row) => row[0]), y: rows.map((row) => row[2]),
        marker: { color: armColour(arm.colour), size: rows.length > 400 ? 4 : 6 }, hoverinfo: "text",
        hovertext: rows.map((row) => `${plain(arm.name)}<br>${dated(data, row[0])}<br>${figure(row[2])}${row[3] === "clipped" ? ", out of range" : ""}`),
      });
    });
    // A void total would compress the scale of all others: it is marked at the edge, its value in the hover text.
    const impossible = data.totals.filter((row) => row[3] === "void");
    if (impossible.length) {
      traces.push({
        type: "scatter", mode: "markers", name: "void, out of range", x: impossible.map((row) => row[0]),
        y: impossible.map((row) => (row[2] > 0 ? most + room : least - room / 2)), cliponaxis: false,
        marker: { symbol: "x", size: 8, color: colour("--bad") }, hoverinfo: "text",
        hovertext: impossible.map((row) => `round ${row[0]}: ${figure(row[2])}, out of range`),
      });
    }
    const gone = data.totals.filter((row) => row[3] === "missing").map((row) => ({
      type: "rect", xref: "x", yref: "paper", x0: row[0] - 0.5, x1: row[0] + 0.5, y0: 0, y1: 1,
      fillcolor: colour("--sunk"), line: { width: 0 }, layer: "below",
    }));
    const words = `Totals of rounds ${data.totals[0]?.[0]} to ${data.totals.at(-1)?.[0]}; the table of rounds has the same numbers.`;
    return draw("chart-totals", traces, { showlegend: traces.length <= COLOURS + 2, shapes: gone.slice(0, 300), xaxis: rounds(data, "chart-totals"), yaxis: { range: [least - (least < 0 ? room : 0), most + 1.6 * room] } }, words);
  };

  const outcome = (data) => {
    if (!document.getElementById("chart-outcome")) return null;
    const { rounds: after, own, equal, low, high } = data.outcome;
    const traces = [];
    if (equal) {
      traces.push({
        type: "scatter", mode: "lines", x: [...after, ...[...after].reverse()], y: [...high, ...[...low].reverse()],
        fill: "toself", fillcolor: colour("--line"), line: { width: 0 }, hoverinfo: "skip", showlegend: false, opacity: 0.5,
      });
      traces.push({
        type: "scatter", mode: "lines", name: "equal split, estimated", x: after, y: equal, line: { color: colour("--soft"), width: 2, dash: "dash" },
        hoverinfo: "text", hovertext: after.map((round, i) => `after ${dated(data, round)}<br>equal split: ${figure(equal[i])}`),
      });
    }
    traces.push({
      type: "scatter", mode: "lines", name: "this experiment", x: after, y: own, line: { color: colour("--accent"), width: 2.5 },
      hoverinfo: "text", hovertext: after.map((round, i) => `after ${dated(data, round)}<br>this experiment: ${figure(own[i])}`),
    });
    return draw("chart-outcome", traces, { showlegend: true, xaxis: rounds(data, "chart-outcome"), yaxis: { rangemode: "tozero" } }, document.getElementById("outcome-words").textContent);
  };

  // The effect of an action by lag; with more than four arms only the leader's interval is drawn.
  const lags = (data) => {
    const arms = data.lags;
    if (!document.getElementById("chart-lags")) return null;
    const x = arms[0].bands.map((_, lag) => lag), last = x.length - 1;
    const traces = arms.flatMap((arm, i) => {
      const ink = armColour(arm.colour), [values, low, high] = [0, 1, 2].map((at) => arm.bands.map((band) => band[at]));
      const area = {
        type: "scatter", mode: "lines", x: [...x, ...[...x].reverse()], y: [...high, ...[...low].reverse()],
        fill: "toself", fillcolor: `${ink}2b`, line: { width: 0 }, hoverinfo: "skip", showlegend: false,
      };
      const line = {
        type: "scatter", mode: "lines+markers", name: short(arm.name, 24), x, y: values, line: { color: ink, width: 2 }, marker: { size: 5 },
        hoverinfo: "text", hovertext: values.map((value, lag) => `${plain(arm.name)}<br>${lag} rounds after the action: ${figure(value)}<br>${figure(low[lag])} to ${figure(high[lag])}`),
      };
      return i && arms.length > 4 ? [line] : [area, line];
    });
    return draw("chart-lags", traces, {
      showlegend: true, yaxis: { zerolinecolor: colour("--edge") },
      xaxis: { range: [-0.3, last + 0.3], title: { text: "rounds since the action", standoff: 6, font: { size: 13 } }, ...(last < 16 ? { dtick: 1, tick0: 0 } : {}) },
    }, "Effects by rounds since the action; the table below has the same numbers.");
  };

  const answer = async (path) => {
    const found = await fetch(`/v1/experiments/${place.dataset.experiment}${path}`, { headers: { Accept: "application/json" } });
    if (!found.ok) throw new Error(`the server answered ${found.status}`);
    return found.json();
  };

  const show = async () => {
    const asked = ["", `/series?last=${place.dataset.rows}`, "/learned"].map(answer);
    const data = prepared(...await Promise.all(asked), place.dataset.unit);
    if (data.totals.length < 2) return;
    place.hidden = false;
    const drawAll = () => Promise.all([timeline, totals, outcome, lags].map((chart) => chart(data)));
    await drawAll();
    document.documentElement.dataset.charts = "drawn";
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  };

  show().catch((error) => {
    const note = document.getElementById("charts-problem");
    note.textContent = `The charts could not be drawn: ${error.message}. The table of rounds below has the same numbers.`;
    note.hidden = false;
  });
})();
