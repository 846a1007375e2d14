// The pages work without this script. It adds: themes, confirmations in a dialog, live updates, countdowns, shortcuts.
"use strict";
(() => {
  const root = document.documentElement;
  const stored = (() => { try { return localStorage.getItem("relet-theme"); } catch { return null; } })();
  if (stored === "light" || stored === "dark") root.dataset.theme = stored; // before the first paint

  const $ = (query, from = document) => from.querySelector(query);
  const $$ = (query, from = document) => [...from.querySelectorAll(query)];
  const RETRY_AFTER = 15000; // milliseconds
  let skew = 0; // seconds that the server's clock is ahead of ours
  let live = true;
  let source = null;
  let waiting = null; // an update that arrived while the user was busy with the page

  const now = () => Date.now() / 1000 + skew;

  function switchTheme() {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("relet-theme", root.dataset.theme); } catch { /* without storage, the theme applies to this page only */ }
  }

  // Running times
  function about(seconds) {
    for (const [least, per, unit] of [[129600, 86400, "d"], [5400, 3600, "h"], [90, 60, "min"]]) {
      if (seconds >= least) return `${Math.round(seconds / per)} ${unit}`;
    }
    return `${Math.round(seconds)} s`;
  }
  function long(seconds) {
    const whole = Math.max(Math.round(seconds), 0);
    for (const [size, unit, smaller, name] of [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]]) {
      const rest = Math.floor((whole % size) / smaller);
      if (whole >= size) return `${Math.floor(whole / size)} ${unit}${rest ? ` ${rest} ${name}` : ""}`;
    }
    return `${whole} s`;
  }
  function tick() {
    for (const time of $$("time[data-when]")) {
      const passed = now() - Date.parse(time.dateTime) / 1000;
      const text = Math.abs(passed) < 0.5 ? "now" : passed > 0 ? `${about(passed)} ago` : `in ${about(-passed)}`;
      if (time.textContent !== text) time.textContent = text;
    }
    for (const time of $$("time[data-since]")) {
      const text = long(now() - Date.parse(time.dateTime) / 1000);
      if (time.textContent !== text) time.textContent = text;
    }
    for (const bar of $$("progress[data-until]")) bar.value = Math.max(Date.parse(bar.dataset.until) / 1000 - now(), 0);
    for (const time of $$("time[data-until]")) {
      const left = Date.parse(time.dateTime) / 1000 - now();
      const text = left > 0 ? `${Math.round(left)} s` : "expired";
      if (time.textContent !== text) time.textContent = text;
    }
  }

  // Live pages: changes are applied in place, so that focus, selection and open details stay.
  // The value of a checkbox is the job of its row and moves with it; the value of a text field is the user's input.
  const KEPT = { DETAILS: ["open"], INPUT: ["value"], BUTTON: ["hidden", "aria-pressed"] };
  function kept(node) {
    return node.matches("input[type=checkbox], input[type=hidden]") ? ["checked"] : KEPT[node.nodeName] || [];
  }
  function named(node) { // not node.id: on a form it may be a field called "id"
    return node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("id") : null;
  }
  function morph(old, fresh) {
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || named(old) !== named(fresh)) return old.replaceWith(fresh);
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
      return;
    }
    if (old.matches("time[data-when], time[data-until], time[data-since], time[data-local]") && old.dateTime === fresh.dateTime) return;
    if (old.matches("text[data-local]") && old.dataset.at === fresh.dataset.at && old.dataset.local === fresh.dataset.local) fresh.textContent = old.textContent;
    if (old.hasAttribute("data-live-switch")) return;
    if (old.matches("progress[data-until]")) { old.dataset.until = fresh.dataset.until; old.max = fresh.max; return; }
    const stays = kept(old);
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !stays.includes(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value && !stays.includes(name)) old.setAttribute(name, value);
    const before = children(old), after = children(fresh);
    after.forEach((child, index) => (before[index] ? morph(before[index], child) : old.append(child)));
    before.slice(after.length).forEach((child) => child.remove());
  }
  function children(node) { // without the whitespace between elements
    return [...node.childNodes].filter((child) => child.nodeType !== Node.TEXT_NODE || child.nodeValue.trim());
  }
  function subject(node) { // the job of a link or a checkbox
    return node.getAttribute("href") || node.value;
  }
  function busy() {
    const focus = document.activeElement;
    const typing = focus && focus.closest("main") && focus.matches("input:not([type=checkbox]), textarea, select");
    return Boolean(typing || $("dialog[open]") || $("main input[type=checkbox]:checked") || !getSelection().isCollapsed);
  }
  function show(html) {
    if (!live) return;
    if (busy()) { waiting = html; return; }
    waiting = null;
    const fresh = new DOMParser().parseFromString(`<main>${html}</main>`, "text/html").body.firstChild;
    const main = $("#main"), flash = $(".flash", main);
    if (flash && !$(".flash", fresh)) fresh.prepend(flash.cloneNode(true));
    for (const attribute of [...main.attributes]) fresh.setAttribute(attribute.name, attribute.value);
    const focused = document.activeElement, what = focused.closest("main") && subject(focused);
    morph(main, fresh);
    if (what && subject(document.activeElement) !== what) { // rows have moved: move the focus along with its row
      const again = $$("main a, main td.check input").find((one) => subject(one) === what);
      if (again) again.focus({ preventScroll: true });
    }
    reveal();
    tick();
    localize();
  }
  function reveal() { // controls that need the script
    for (const one of $$("[data-theme-switch], [data-help], [data-all]")) one.hidden = false;
    if (!document.body.dataset.live) return;
    for (const one of $$("[data-live-switch]")) { one.hidden = false; one.setAttribute("aria-pressed", live); }
  }
  function listen() {
    const address = document.body.dataset.live;
    if (!address || !window.EventSource || source || document.hidden || !live) return;
    source = new EventSource(address);
    source.addEventListener("main", (event) => { setLiveWord("live"); show(event.data); });
    source.addEventListener("open", () => setLiveWord("live"));
    source.addEventListener("error", () => {
      if (!source) return;
      setLiveWord("reconnecting");
      if (source.readyState !== EventSource.CLOSED) return; // the browser reconnects by itself
      stopListening(); // refused: the session has ended, or too many pages are live
      setTimeout(listen, RETRY_AFTER);
    });
  }
  function stopListening() { if (source) { source.close(); source = null; } }
  function setLiveWord(word) { for (const one of $$("[data-live-word]")) one.textContent = word; }
  function switchLive() {
    live = !live;
    for (const button of $$("[data-live-switch]")) button.setAttribute("aria-pressed", live);
    if (live) listen(); else stopListening();
    setLiveWord(live ? "live" : "not live");
  }

  // Confirmations: the confirmation page, in a dialog
  let opener = null;
  async function confirm(address, from) {
    const dialog = $("#confirm");
    try {
      const answer = await fetch(address, { headers: { Accept: "text/html" }, credentials: "same-origin" });
      if (!answer.ok || answer.redirected) throw new Error(answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const box = page.querySelector("#main .confirm-box");
      if (!box) throw new Error("no confirmation");
      dialog.replaceChildren(document.importNode(box, true));
      $$("h1", dialog).forEach((title) => { title.id = "confirm-title"; });
      dialog.setAttribute("aria-labelledby", "confirm-title");
      opener = from;
      if (!dialog.open) dialog.showModal();
      const field = $("textarea, select, input:not([type=hidden])", dialog);
      // Enter confirms the action, unless it destroys something.
      (field || $(".ends .danger", dialog) && $(".ends [data-back]", dialog) || $(".ends button", dialog)).focus();
    } catch {
      location.assign(address); // fall back to the page without a dialog
    }
  }
  function onClick(event) {
    const at = (query) => event.target.closest(query);
    if (at("[data-theme-switch]")) switchTheme();
    else if (at("[data-help]")) $("#help").showModal();
    else if (at("[data-live-switch]")) switchLive();
    else if (at("#confirm [data-back]")) { event.preventDefault(); $("#confirm").close(); }
    else if (at("a[data-confirm]") && !event.metaKey && !event.ctrlKey && !event.shiftKey && event.button === 0) {
      event.preventDefault();
      confirm(at("a[data-confirm]").href, at("a[data-confirm]"));
    } else if (event.target.matches("dialog")) event.target.close();
  }
  function onSubmit(event) {
    const form = event.target;
    if (form.matches("form[data-confirm]")) {
      const data = new FormData(form, event.submitter);
      event.preventDefault();
      const action = (event.submitter && event.submitter.getAttribute("formaction")) || form.getAttribute("action");
      confirm(`${action}?${new URLSearchParams(data)}`, event.submitter);
    } else if (form.getAttribute("method") === "post" && form.closest("main, dialog")) {
      const buttons = $$("button", form); // prevent a second submission
      setTimeout(() => buttons.forEach((button) => { button.disabled = true; }));
      setTimeout(() => buttons.forEach((button) => { button.disabled = false; }), 5000);
    }
  }
  function onChange(event) {
    if (!event.target.matches("[data-all]")) { count(); return; }
    for (const box of $$("main td.check input")) box.checked = event.target.checked;
    count();
  }
  function count() {
    const number = $$("main td.check input:checked").length;
    for (const label of $$("[data-selected]")) label.textContent = number ? `${number} selected` : "";
    if (!number && waiting) show(waiting);
  }

  // Charts: the numbers of the step below the pointer
  let readout = null;
  function onPointer(event) {
    const hint = event.target.closest && event.target.closest(".chart .hint");
    if (!hint) { if (readout) { readout.remove(); readout = null; } return; }
    const native = $("title", hint);
    if (native) { hint.dataset.text = native.textContent; native.remove(); } // else the browser shows it as well
    if (!readout) { readout = document.createElement("div"); readout.className = "readout"; document.body.append(readout); }
    const [when, ...rest] = hint.dataset.text.split(" UTC: ");
    const at = new Date(Number(hint.dataset.at) * 1000);
    readout.textContent = [`${local(at, when.includes(" ") ? "hour" : "minute")}`, ...rest.join(" UTC: ").split(", ")].join("\n");
    const box = readout.getBoundingClientRect();
    readout.style.left = `${Math.min(event.clientX + 14, innerWidth - box.width - 8)}px`;
    readout.style.top = `${Math.max(event.clientY - box.height - 12, 8)}px`;
  }

  // Local times; the time in UTC is the tooltip
  const FORMS = {
    time: { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
    fraction: { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23" },
    minute: { hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
    hour: { weekday: "short", day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
    day: { weekday: "short", day: "2-digit" },
    moment: { day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" },
    full: { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" },
  };
  function local(date, form) {
    if (form === "full") { // 2026-11-16 07:20:11, as in UTC
      const part = Object.fromEntries(new Intl.DateTimeFormat("en-GB", FORMS.full).formatToParts(date).map(({ type, value }) => [type, value]));
      return `${part.year}-${part.month}-${part.day} ${part.hour}:${part.minute}:${part.second}`;
    }
    return new Intl.DateTimeFormat("en-GB", FORMS[form] || FORMS.time).format(date);
  }
  function localize() {
    for (const time of $$("time[data-local]")) {
      const text = local(new Date(Date.parse(time.dateTime)), time.dataset.local);
      if (time.textContent !== text) time.textContent = text;
    }
    for (const label of $$("svg text[data-local]")) {
      const text = local(new Date(Number(label.dataset.at) * 1000), label.dataset.local);
      if (label.textContent !== text) label.textContent = text;
    }
    for (const sentence of $$("[data-sentence] bdi, [data-sentence]:not(:has(bdi)), .step .bar-label .quiet")) {
      const found = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/.exec(sentence.textContent); // the first is ours, others may be a job's
      if (found) sentence.textContent = sentence.textContent.replace(found[0], local(new Date(found[0].replace(" UTC", "Z")), "full"));
    }
    for (const zone of $$("[data-zone]")) zone.textContent = `times are ${Intl.DateTimeFormat().resolvedOptions().timeZone.replace("_", " ")}`;
  }

  // Keyboard shortcuts
  let before = "";
  function move(by) {
    const rows = $$("main tbody tr a.job, main .lines a.job");
    if (!rows.length) return;
    const here = document.activeElement && document.activeElement.closest("tr, li");
    const index = rows.findIndex((row) => row.closest("tr, li") === here);
    const next = rows[Math.min(Math.max(index + by, 0), rows.length - 1)];
    next.focus();
    next.scrollIntoView({ block: "nearest" });
  }
  function onKey(event) {
    if (event.metaKey || event.ctrlKey || event.altKey || $("dialog[open]")) return;
    if (event.target.matches("input:not([type=checkbox]), textarea, select")) return;
    const first = before;
    before = "";
    if (first === "g") {
      const link = $(`nav [data-go="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    switch (event.key) {
      case "g": before = "g"; break;
      case "?": event.preventDefault(); $("#help").showModal(); break;
      case "/": { const field = $("main [data-filter]"); if (field) { event.preventDefault(); field.focus(); field.select && field.select(); } else location.assign(`${document.body.dataset.root}/jobs`); break; }
      case "j": move(1); break;
      case "k": move(-1); break;
      case "l": switchLive(); break;
      case "x": { const row = document.activeElement.closest("tr"), box = row && $("td.check input", row); if (box) { box.checked = !box.checked; count(); } break; }
      default:
    }
  }

  document.addEventListener("DOMContentLoaded", () => {
    skew = Number(document.body.dataset.now) - Date.now() / 1000;
    if (Math.abs(skew) < 1) skew = 0; // the difference is only the network delay
    reveal();
    document.addEventListener("click", onClick);
    document.addEventListener("submit", onSubmit);
    document.addEventListener("change", onChange);
    document.addEventListener("pointermove", onPointer, { passive: true });
    document.addEventListener("keydown", onKey);
    document.addEventListener("visibilitychange", () => (document.hidden ? stopListening() : listen()));
    document.addEventListener("focusout", () => setTimeout(() => { if (waiting) show(waiting); }, 200));
    $("#confirm").addEventListener("close", () => { if (opener && opener.isConnected) opener.focus(); opener = null; });
    const current = $(".side nav [aria-current]");
    if (current && innerWidth <= 900) current.scrollIntoView({ inline: "center", block: "nearest" });
    localize();
    setInterval(tick, 1000);
    count();
    listen();
  });
})();
