"use strict";
(() => {
	const SVG = "http://www.w3.org/2000/svg";
	const $ = (id) => document.getElementById(id);
	const PARTS = [
		["compute", "compute"], ["network", "network"], ["ahead", "waits for others"], ["apply", "apply"],
	];

	/* Elements are made of text, never of markup: names come from other machines. */
	const el = (tag, cls, ...kids) => {
		const e = document.createElement(tag);
		if (cls) e.className = cls;
		e.append(...kids.filter((k) => k !== null && k !== undefined));
		return e;
	};
	const svg = (tag, attrs, ...kids) => {
		const e = document.createElementNS(SVG, tag);
		for (const k in attrs) e.setAttribute(k, attrs[k]);
		e.append(...kids);
		return e;
	};
	const short = (v) => v === null || v === undefined ? "–"
		: v === 0 ? "0" : v >= 100 ? v.toFixed(0) : v >= 10 ? v.toFixed(1) : v >= 0.1 ? v.toFixed(2) : v.toPrecision(2);
	const scale = (v, units, by) => {
		let i = 0;
		while (v >= by && i < units.length - 1) { v /= by; i++; }
		return [short(v), units[i]];
	};
	const bytes = (v) => scale(v, ["B", "KiB", "MiB", "GiB", "TiB"], 1024);
	const rate = (v) => scale(v, ["B/s", "kB/s", "MB/s", "GB/s"], 1000);
	const count = (v) => scale(v, ["", "k", "M", "G"], 1000);
	const whole = (v) => String(v).replace(/\B(?=(\d{3})+(?!\d))/g, "\u2009");
	const ms = (v) => v === null ? ["–", ""] : v < 1 ? [short(v * 1000), "µs"] : v < 1000 ? [short(v), "ms"] : [short(v / 1000), "s"];
	const age = (s) => s < 60 ? `${Math.floor(s)} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 86400
		? `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min` : `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;

	const tile = (id, name, [value, unit], more) => {
		const e = el("div", "tile", el("div", "name", name),
			el("div", "value", value, el("span", "unit", unit || "")), el("div", "more", more || ""));
		e.id = id;
		return e;
	};
	const badge = (text, kind) => el("span", "badge " + (kind || ""), text);

	/* A bar of parts, [class, size, title]; `total`: what the whole bar stands for. */
	const bar = (parts, total, label) => {
		const e = el("div", "bar");
		e.setAttribute("role", "img");
		e.setAttribute("aria-label", label);
		e.title = label;
		for (const [cls, size] of parts) {
			const s = el("span", cls);
			s.style.width = `${total > 0 ? Math.min(100, 100 * size / total) : 0}%`;
			e.append(s);
		}
		return e;
	};

	/* What is known of a split: the trainer's own part is told apart where it says how long it computed. */
	const parts = (s) => {
		if (s.own_ms === null) return null;
		const own = s.compute_ms !== null ? [["compute", s.compute_ms], ["network", s.network_ms]] : [["own", s.own_ms]];
		return [...own, ["ahead", s.ahead_ms || 0], ["apply", s.apply_ms || 0]];
	};
	const words = (p) => p.map(([n, v]) => `${n === "ahead" ? "waits for others" : n === "own" ? "compute and network" : n} ${ms(v).join(" ")}`).join(", ");

	const fill = (table, heads, rows, empty) => {
		const cells = (row) => {
			const tr = el("tr");
			row.forEach((c, i) => {
				const [name, cls] = heads[i];
				const td = el("td", cls || "", ...(Array.isArray(c) ? c : [c]));
				td.dataset.name = name;
				tr.append(td);
			});
			return tr;
		};
		if (rows.length === 0) {
			table.replaceChildren(el("caption", "empty", empty));
			return;
		}
		const head = el("tr", "", ...heads.map(([name, cls]) => {
			const th = el("th", cls || "", name);
			th.scope = "col";
			return th;
		}));
		table.replaceChildren(el("thead", "", head), el("tbody", "", ...rows.map(cells)));
	};

	/* Stacked areas of the last five minutes; a point without steps is a gap. */
	const W = 640, H = 190, LEFT = 60, BOTTOM = 20;
	const x = (i, n, left = LEFT, w = W) => left + (w - left - 6) * (i + 300 - n) / 299;
	const nice = (v) => {
		const p = Math.pow(10, Math.floor(Math.log10(v)));
		return [1, 2, 5, 10].map((f) => f * p).find((f) => f >= v);
	};
	const frame = (top, unit, height) => {
		const g = svg("g", {});
		for (let i = 0; i <= 2; i++) {
			const y = 6 + (height - BOTTOM - 6) * (1 - i / 2);
			g.append(svg("line", { class: "grid", x1: LEFT, x2: W - 6, y1: y, y2: y }));
			g.append(svg("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, unit(top * i / 2)));
		}
		for (let m = 0; m <= 5; m++) {
			g.append(svg("text", { x: x(299 - 60 * m, 300), y: height - 4, "text-anchor": m === 0 ? "end" : m === 5 ? "start" : "middle" },
				m === 0 ? "now" : `−${m} min`));
		}
		return g;
	};
	const drawSplit = (h) => {
		const n = h.own_ms.length;
		const at = [];
		for (let i = 0; i < n; i++) {
			const s = {};
			for (const k of ["own_ms", "compute_ms", "network_ms", "ahead_ms", "apply_ms"]) s[k] = h[k][i];
			at.push(parts(s));
		}
		const sums = at.filter((p) => p).map((p) => p.reduce((a, [, v]) => a + v, 0));
		if (sums.length === 0) {
			$("split-chart").replaceChildren(el("p", "empty", "No step has been timed in the last five minutes. Times are of synchronous steps."));
			return;
		}
		/* One slow step does not flatten the rest. */
		const sorted = [...sums].sort((a, b) => a - b);
		const top = nice(Math.min(sorted[sorted.length - 1], 1.6 * sorted[Math.floor(0.95 * (sorted.length - 1))]) || 1);
		const y = (v) => 6 + (H - BOTTOM - 6) * (1 - Math.min(v, top) / top);
		const g = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img" });
		const last = at[n - 1] || at.filter((p) => p).pop();
		g.setAttribute("aria-label", `The time of a step over the last five minutes; last: ${words(last)}`);
		g.append(frame(top, (v) => v === 0 ? "0" : ms(v).join(" "), H));
		for (const cls of ["compute", "network", "own", "ahead", "apply"]) {
			let d = "";
			let run = [];
			const end = () => {
				if (run.length > 0) {
					if (run.length === 1) run.push([run[0][0] + 1.5, run[0][1], run[0][2]]);
					d += "M" + run.map(([px, , hi]) => `${px.toFixed(1)},${y(hi).toFixed(1)}`).join("L") + "L"
						+ run.reverse().map(([px, lo]) => `${px.toFixed(1)},${y(lo).toFixed(1)}`).join("L") + "Z";
				}
				run = [];
			};
			at.forEach((p, i) => {
				let lo = 0;
				const hit = p && p.find(([k, v]) => k === cls || (lo += v, false));
				if (hit) run.push([x(i, n), lo, lo + hit[1]]); else end();
			});
			end();
			if (d) g.append(svg("path", { class: cls, d }));
		}
		$("split-chart").replaceChildren(g);
		const shown = last.some(([k]) => k === "own")
			? [["own", "compute and network"], ["ahead", "waits for others"], ["apply", "apply"]] : PARTS;
		$("legend").replaceChildren(...shown.map(([k, name]) => {
			const v = last.find(([p]) => p === k);
			return el("li", "", el("i", k), `${name} ${v ? ms(v[1]).join(" ") : ""}`);
		}));
	};
	const spark = (name, format, ...lines) => {
		const h = 54, w = 420, left = 62;
		const top = nice(Math.max(1e-9, ...lines.flatMap(([, v]) => v)));
		const y = (v) => h - 3 - (h - 8) * v / top;
		const g = svg("svg", { viewBox: `0 0 ${w} ${h}`, role: "img", "aria-label": `${name} over the last five minutes` });
		g.append(svg("line", { class: "grid", x1: left, x2: w - 6, y1: h - 3, y2: h - 3 }),
			svg("line", { class: "grid", x1: left, x2: w - 6, y1: y(top), y2: y(top) }),
			svg("text", { x: left - 6, y: y(top) + 8, "text-anchor": "end" }, format(top).join(" ")));
		lines.forEach(([, v], i) => g.append(svg("polyline", {
			class: i ? "spark two-nd" : "spark",
			points: v.map((p, j) => `${x(j, v.length, left, w).toFixed(1)},${y(p).toFixed(1)}`).join(" "),
		})));
		const row = el("div", "rate", el("span", "", name));
		const now = el("b", "");
		lines.forEach(([label, v], i) => {
			const key = el("i", "key " + (lines.length > 1 ? (i ? "network" : "compute") : ""));
			if (lines.length > 1) now.append(key);
			now.append(`${label ? label + " " : ""}${format(v[v.length - 1] || 0).join(" ")} `);
		});
		row.append(now);
		return [row, g];
	};
	const drawRates = (h) => {
		if (h.steps_per_s.length === 0) {
			$("rate-charts").replaceChildren(el("p", "empty", "The first second is being measured."));
			return;
		}
		const list = [...spark("steps per second", count, ["", h.steps_per_s]),
			...spark("bytes", rate, ["in", h.received_bytes_per_s], ["out", h.sent_bytes_per_s])];
		if (h.keys_pulled_per_s.some((v) => v > 0) || h.keys_pushed_per_s.some((v) => v > 0)) {
			list.push(...spark("keys per second", count, ["read", h.keys_pulled_per_s], ["pushed", h.keys_pushed_per_s]));
		}
		$("rate-charts").replaceChildren(...list);
	};

	const STATE = { up: "good", lost: "bad", absent: "warn", left: "" };
	const drawMembers = (d) => {
		const total = Math.max(...d.members.map((m) => (parts(m.split) || []).reduce((a, [, v]) => a + v, 0)), 0);
		const worst = Math.max(1, ...d.members.map((m) => m.lag_steps));
		fill($("members"), [["trainer"], ["state"], ["step", "num"], ["lag", "num"], ["a step", "wide"], ["last", "num"], ["path"], ["", "note"]],
			d.members.map((m) => {
				const p = parts(m.split);
				const lag = m.lag_steps === 0 ? "0" : [whole(m.lag_steps), (() => { const b = bar([["", m.lag_steps]], worst, `${m.lag_steps} steps behind`); b.classList.add("lag"); return b; })()];
				const note = [m.note, m.waited_for.length > 0 && d.job.wait ? `waited for: ${m.waited_for.join(", ")}` : "",
					m.out_of_data ? "out of data" : "", m.silent_s > 1 ? `silent for ${age(m.silent_s)}` : "",
					m.reconnects > 0 ? `${m.reconnects} reconnects` : ""].filter((t) => t).join("; ");
				return [[el("b", "", String(m.trainer)), el("span", "sub", m.host ? `${m.host} pid ${m.pid}` : "")],
					badge(m.state, STATE[m.state]), whole(m.step), lag,
					p ? bar(p, total, words(p)) : el("span", "quiet", "not timed"),
					m.last_share === null ? "–" : [`${(100 * m.last_share).toFixed(0)} %`, el("span", "sub", m.last_share > 0 ? `by ${ms(m.behind_ms).join(" ")}` : "")],
					(() => { const s = el("span", "", m.path || "–"); s.title = m.path_why || ""; return s; })(), note];
			}), "No trainer has come yet.");
	};
	const drawLanes = (d) => {
		fill($("lanes"), [["lane"], ["port", "num"], ["state"], ["its thread", "wide"], ["steps/s", "num"], ["in", "num"], ["out", "num"], ["memory", "num"], ["", "note"]],
			d.lanes.map((l) => {
				const p = l.poll_share === null ? null : [["poll", l.poll_share], ["apply", l.apply_share], ["park", l.park_share]];
				const c = l.counters;
				const note = [l.wait, l.last_stranger ? `last stranger: ${l.last_stranger}` : "", c.refused > 0 ? `${c.refused} refused` : ""].filter((t) => t).join("; ");
				return [[el("b", "", String(l.lane)), el("span", "sub", l.kind)], String(l.port), badge(l.state === "none" ? "idle" : l.state, l.state === "failed" ? "bad" : l.state === "running" ? "good" : ""),
					p ? bar(p, 1, `moves bytes ${(100 * l.poll_share).toFixed(0)} %, applies ${(100 * l.apply_share).toFixed(0)} %, copies aside ${(100 * l.park_share).toFixed(0)} %, idle ${(100 * l.idle_share).toFixed(0)} %`) : el("span", "quiet", "not timed"),
					short(l.steps_per_s), rate(l.received_bytes_per_s).join(" "), rate(l.sent_bytes_per_s).join(" "),
					bytes(c.shard_bytes + c.slot_bytes + c.park_bytes).join(" "), note];
			}), "No lane has shown anything yet.");
	};
	const drawTables = (d) => {
		$("tables-card").hidden = d.tables.length === 0;
		fill($("tables"), [["table"], ["rows", "num"], ["memory", "num"], ["looked up", "num"], ["missed", "num"], ["evicted", "num"], ["skew", "num"], ["hot keys", "note"]],
			d.tables.map((t) => [[el("b", "", t.table), el("span", "sub", `lane ${t.lane}`)], whole(t.rows), bytes(t.bytes).join(" "), count(t.looked_up).join(" "),
				t.looked_up > 0 ? `${(100 * t.missed / t.looked_up).toFixed(1)} %` : "–", whole(t.evicted), short(t.zipf),
				t.hot.slice(0, 5).map((k) => `${k.key}: ${count(k.times).join("")}`).join("  ")]), "");
	};
	const drawNews = (d) => {
		const items = [...d.news].reverse().map((n) => el("li", "", el("time", "", `${age(n.ago_s)} ago`),
			el("span", "", n.trainer === null ? n.what : `trainer ${n.trainer} ${n.what}${n.host ? " from " + n.host : ""}`, n.why ? el("span", "quiet", ` ${n.why}`) : "")));
		$("news").replaceChildren(...(items.length ? items : [el("li", "empty", "Nothing yet.")]));
	};
	const drawMore = (d) => {
		const row = (name, value) => [el("dt", "", name), el("dd", "", value)];
		const m = d.memory, s = d.snapshots;
		$("more").replaceChildren(...row("parameters and state", bytes(m.parameters_bytes).join(" ")),
			...(d.tables.length ? row("tables", bytes(m.tables_bytes).join(" ")) : []),
			...row("windows", bytes(m.windows_bytes).join(" ")), ...row("gradients copied aside", bytes(m.parked_bytes).join(" ")),
			...(s === null ? row("snapshots", "none are taken") : [...row("newest snapshot", s.step > 0 ? `step ${whole(s.step)}, ${age(s.age_s)} ago` : "none yet"),
				...row("written, failed", `${s.written}, ${s.failed}`)]));
	};
	const drawTiles = (d) => {
		const j = d.job, r = d.rates || {};
		const sparse = d.pserver && d.pserver.sparse_lanes > 0;
		$("tiles").replaceChildren(
			tile("t-trainers", "trainers", [j.trainers_up === undefined ? "–" : `${j.trainers_up} of ${j.trainers}`, ""],
				[j.trainers_lost ? `${j.trainers_lost} lost` : "", j.trainers_left ? `${j.trainers_left} left` : ""].filter((t) => t).join(", ")),
			tile("t-step", "step", [j.step === undefined ? "–" : whole(j.step), ""], j.pass === undefined ? "" : `pass ${j.pass}, ${whole(j.samples)} samples`),
			tile("t-rate", "steps per second", [short(r.steps_per_s), ""], j.age_s > 0 ? `the job is ${age(j.age_s)} old` : ""),
			tile("t-time", "time of a step", ms(d.step.p50_ms), d.step.p99_ms === null ? "" : `99 % within ${ms(d.step.p99_ms).join(" ")}`),
			tile("t-in", sparse ? "dense, in" : "received", rate(r.received_bytes_per_s || 0), sparse ? `sparse ${rate(r.sparse_received_bytes_per_s || 0).join(" ")}` : ""),
			tile("t-out", sparse ? "dense, out" : "sent", rate(r.sent_bytes_per_s || 0), sparse ? `sparse ${rate(r.sparse_sent_bytes_per_s || 0).join(" ")}` : ""),
			...(sparse ? [tile("t-keys", "keys read / s", count(r.keys_pulled_per_s || 0), `${count(r.keys_pushed_per_s || 0).join("")} pushed`)] : []));
	};
	const drawHead = (d) => {
		const p = d.pserver, s = d.job.state;
		$("state").textContent = s === "none" ? "waiting for a job" : s;
		$("state").className = "badge " + (s === "running" ? (d.job.wait ? "warn" : "good") : s === "failed" ? "bad" : "");
		$("where").textContent = p ? `pserver ${p.index}${p.count > 1 ? " of " + p.count : ""} on ${p.host}, port ${p.port}, up ${age(p.uptime_s)}` : "";
		$("version").textContent = `weft ${d.version || ""}`;
		document.title = `${s === "none" ? "waiting" : s} · weft`;
		const b = $("banner");
		const text = d.job.cause || (d.job.wait ? `${d.job.wait}, for ${age(d.job.wait_s)} now` : "");
		b.hidden = text === "";
		b.className = d.job.cause ? "bad" : "";
		if (b.textContent !== text) b.textContent = text;
	};

	let paused = false, misses = 0;
	const draw = (d) => {
		drawHead(d); drawTiles(d); drawSplit(d.history); drawRates(d.history); drawMembers(d); drawLanes(d); drawTables(d); drawNews(d); drawMore(d);
		document.body.dataset.drawn = String(1 + Number(document.body.dataset.drawn || 0));
	};
	const look = async () => {
		if (!paused && !document.hidden) {
			try {
				const answer = await fetch("/api/v1/status", { cache: "no-store" });
				if (!answer.ok) throw new Error(String(answer.status));
				draw(await answer.json());
				misses = 0;
			} catch (e) {
				if (++misses >= 2) {
					$("state").textContent = "no answer";
					$("state").className = "badge bad";
				}
			}
		}
		setTimeout(look, 1000);
	};
	const toggle = () => {
		paused = !paused;
		$("pause").setAttribute("aria-pressed", String(paused));
		$("pause").textContent = paused ? "Go on" : "Pause";
	};
	$("pause").addEventListener("click", toggle);
	document.addEventListener("keydown", (e) => {
		if (e.key === "p" && !e.ctrlKey && !e.metaKey && !e.altKey) toggle();
	});
	look();
})();
