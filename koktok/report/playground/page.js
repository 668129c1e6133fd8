// The page around engine.js, which stands before this in the same module.

const WORDS = {
  en: {
    type: "Type or drop text", samples: "Examples", special: "recognize special tokens", open: "Open a file", link: "Copy a link to this",
    legend: "Colours", hit: "cut at a morpheme boundary", over: "cut inside a morpheme", miss: "boundary that is not cut", unknown: "word not in the page's list",
    plain: "nothing to judge: no Hangul, or one syllable", ring: "the other tokenizer cuts elsewhere", bytes: "bytes of a character", detail: "Selected token", light: "Light", dark: "Dark",
    tokenizer: "Tokenizer", tokens: "tokens", perEojeol: "tokens per eojeol", perToken: "bytes per token", met: "boundaries cut", inside: "morphemes cut",
    ofKnown: (share) => `${share} of the eojeols are in the list`, against: (name) => `relative to ${name}`, ids: "ids", show: "Show ids", stream: "Stream", step: "Next id", restart: "Restart", pause: "Pause",
    size: (n) => `${n} ids`, empty: "Type a text to see its tokens.", held: (ids) => `held back: ${ids}`, nothingHeld: "nothing held back", linked: "The address was copied.", linkHere: "The address of this page now contains the text.",
    dropped: (name, n) => `${name}: ${n} characters`, cut: (name, n) => `${name}: the first ${n} characters`, notText: (name) => `${name} is not UTF-8 text.`,
    token: "Token", id: "id", score: "score", rank: "rank", place: "characters", character: "character", code: "code point", jamo: "jamo", utf8: "bytes", word: "Word", form: "morpheme", tag: "part of speech",
    isByte: "a byte: the character has no piece of its own", isSpecial: "a special token", nBest: "Best segmentations", behind: "difference", replay: "Merges, one by one", join: (k, n) => `${k} of ${n} merges`,
    joined: (piece, rank) => `${piece}, rank ${rank}`, start: "the letters", longest: "The longest piece is taken from the left, repeatedly.", wholeWord: "A word is one token, or unknown.", notKnown: "not in the page's list", privacy: "The text does not leave this page.", morphemes: "Morphemes by",
    broken: "This page could not be unpacked; it requires a browser of 2023 or later.", none: "no comparison",
  },
  ko: {
    type: "텍스트 입력 또는 끌어다 놓기", samples: "예문", special: "특수 토큰 인식", open: "파일 열기", link: "이 상태의 주소 복사",
    legend: "색", hit: "형태소 경계에서 나눔", over: "형태소 안에서 나눔", miss: "나누지 않은 형태소 경계", unknown: "이 페이지의 목록에 없는 단어",
    plain: "판정할 것이 없음(한글이 없거나 한 음절)", ring: "다른 쪽은 다르게 나눔", bytes: "글자의 바이트", detail: "선택한 토큰", light: "밝게", dark: "어둡게",
    tokenizer: "토크나이저", tokens: "토큰", perEojeol: "어절당 토큰", perToken: "토큰당 바이트", met: "나눈 경계", inside: "나뉜 형태소",
    ofKnown: (share) => `목록에 있는 어절 ${share}`, against: (name) => `${name} 대비`, ids: "ID", show: "ID 보기", stream: "한 토큰씩", step: "다음 ID", restart: "처음부터", pause: "일시 정지",
    size: (n) => `ID ${n}개`, empty: "텍스트를 입력하면 토큰이 나타납니다.", held: (ids) => `대기 중: ${ids}`, nothingHeld: "대기 중인 ID 없음", linked: "주소를 복사했습니다.", linkHere: "이 페이지의 주소에 텍스트를 담았습니다.",
    dropped: (name, n) => `${name}: ${n}자`, cut: (name, n) => `${name}: 앞 ${n}자`, notText: (name) => `${name}: UTF-8 텍스트가 아닙니다.`,
    token: "토큰", id: "ID", score: "점수", rank: "순위", place: "글자 위치", character: "글자", code: "코드 포인트", jamo: "자모", utf8: "바이트", word: "단어", form: "형태소", tag: "품사",
    isByte: "바이트: 이 글자에 해당하는 조각이 없습니다", isSpecial: "특수 토큰", nBest: "점수가 높은 분할", behind: "차이", replay: "병합 과정", join: (k, n) => `병합 ${n}번 가운데 ${k}번`,
    joined: (piece, rank) => `${piece}, ${rank}순위`, start: "낱자", longest: "왼쪽부터 가장 긴 조각을 차례로 고릅니다.", wholeWord: "단어 하나가 토큰 하나이며, 없는 단어는 미등록 토큰이 됩니다.", notKnown: "이 페이지의 목록에 없음", privacy: "입력한 텍스트는 이 페이지 밖으로 나가지 않습니다.", morphemes: "형태소 분석:",
    broken: "페이지의 압축을 풀 수 없습니다. 2023년 이후의 브라우저가 필요합니다.", none: "비교하지 않음",
  },
};
const SAMPLES = {
  en: ["News", "Chat", "Code", "Numbers", "Old Hangul, hanja", "English"],
  ko: ["기사", "대화", "코드", "숫자", "옛글·한자", "영어"],
  text: [
    "학교에서는 책을 읽습니다. 시청은 어제 새 도서관의 설계를 공개했다. 책을 읽던 아이들이 벌써부터 개관을 기다리고 있다고 선생님은 말했습니다.",
    "ㅋㅋㅋㅋ 아니 그걸 왜 이제 말해ㅠㅠ 나 벌써 집에 갔다가 다시 나왔거든?? 담엔 꼭 미리 얘기해줘~ 👍🏽",
    "API를 호출하면 JSON으로 응답합니다. `tokenizer.encode(text)`가 돌려주는 ids를 모델에 넘기세요.",
    "2026년 11월 22일 기준 환율은 1,384.50원이고, 수출은 지난해보다 3.7% 늘어난 612억 달러였습니다.",
    "나랏〮말〯ᄊᆞ미 中國에 달아 文字와로 서르 ᄉᆞᄆᆞᆺ디 아니ᄒᆞᆯᄊᆡ 憲法 第一條 ㈜가나 ½",
    "Korean nouns take particles and stems take endings in one word; a tokenizer that learns from spelling alone cannot see where one ends.",
  ],
};
const CLASSES = { N: ["noun", "체언"], V: ["verb", "용언"], J: ["particle", "조사"], E: ["ending", "어미"], M: ["modifier", "수식언"], X: ["affix, root", "접사·어근"], I: ["interjection", "감탄사"], S: ["sign", "기호"], W: ["web", "웹"] };
const MOST_TEXT = 200_000; // characters of a file
const N_BEST = 8;
const BEAT = 140; // milliseconds between two ids of a stream

const $ = (id) => document.getElementById(id);
const root = document.documentElement;
const state = { text: "", shown: [0, -1], chosen: null, ids: false, special: false };
const made = []; // the tokenizers that have been asked for
let catalogue, against, shared, lexicon = new Map(), shapes = [];
let say = WORDS.en;

/** An element; what begins with "on" in its attributes is a listener, text is text. */
function h(tag, attributes = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...inside.filter((part) => part !== null && part !== undefined));
  return made;
}

const number = (value, digits = 0) => value.toLocaleString(root.lang, { minimumFractionDigits: digits, maximumFractionDigits: digits });
const signed = (ratio) => `${ratio < 0 ? "−" : "+"}${percent(Math.abs(ratio), 1)}`;
const percent = (value, digits = 0) => `${number(100 * value, digits)} %`;

async function unpack(id) {
  const bytes = await through(fromBase64($(id).textContent), new DecompressionStream("gzip"));
  return JSON.parse(new TextDecoder().decode(bytes));
}

function fromBase64(text) {
  const chars = atob(text), bytes = new Uint8Array(chars.length);
  for (let i = 0; i < chars.length; i++) bytes[i] = chars.charCodeAt(i);
  return bytes;
}

const through = async (bytes, stream) => new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());

async function tokenizerOf(i) {
  return (made[i] ??= new Tokenizer(await unpack(`tokenizer-${i}`), shared));
}

async function readLexicon() {
  const { words, of, shapes: rows } = await unpack("lexicon");
  shapes = rows.map(([row, gold, free]) => ({ row, gold, free }));
  let before = "";
  if (of.length) words.split(" ").forEach((word, i) => lexicon.set((before = before.slice(0, parseInt(word[0], 36)) + word.slice(1)), shapes[of[i]]));
}

// ---- what the morphemes say of a text

/** Runs of syllables with what is known of them, and for every character the run that it is in. */
function judgement(chars) {
  const run = Array(chars.length).fill(null);
  const gold = new Set(), free = new Set();
  for (let i = 0, j; i < chars.length; i = j) {
    for (j = i; j < chars.length && isSyllable(chars[j]); j++);
    if (j === i) {
      j++;
      continue;
    }
    const word = chars.slice(i, j).join("");
    const found = { start: i, end: j, word, shape: j - i === 1 ? { gold: [], free: [], row: "" } : lexicon.get(word) };
    for (let k = i; k < j; k++) run[k] = found;
    for (const offset of found.shape?.gold ?? []) gold.add(i + offset);
    for (const offset of found.shape?.free ?? []) free.add(i + offset);
  }
  return { chars, run, gold, free };
}

/** What a cut at an offset is: "hit", "over", "free", or "" where nothing is judged. */
function cutAt({ chars, run, gold, free }, at) {
  const here = run[at];
  if (at >= chars.length || !here?.shape || here.start === at) return "";
  return gold.has(at) ? "hit" : free.has(at) ? "free" : "over";
}

const fatal = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
function asText(bytes) {
  try {
    return fatal.decode(Uint8Array.from(bytes));
  } catch {
    return null;
  }
}

/** Tokens as they are shown: text, state, marks. */
function views(tokenizer, { ids, spans }, judged) {
  const { chars, run, gold } = judged;
  return ids.map((id, i) => {
    const [start, end] = spans[i];
    const view = { id, start, end, state: "plain", begins: "", parts: [], ring: false };
    if (id >= tokenizer.firstSpecial) {
      view.state = "special";
      view.parts.push(tokenizer.token(id));
    } else if ((i && spans[i - 1][1] > start) || (i + 1 < ids.length && spans[i + 1][0] < end)) {
      const bytes = tokenizer.bytes(id);
      const text = id < tokenizer.nBytes ? null : asText(bytes); // a jamo of a syllable is text, a byte of one is none
      view.state = "bytes";
      view.parts.push(text === null ? hex(bytes, "·") : typed(text));
    } else {
      const before = cutAt(judged, start), after = cutAt(judged, end);
      if (before === "hit" || before === "over") view.begins = before;
      let from = start, known = false, unknown = false;
      for (let at = start; at < end; at++) {
        if (at > start && gold.has(at)) view.parts.push(chars.slice(from, at).join("")), (from = at);
        if (run[at]?.shape) known ||= run[at].end - run[at].start > 1; // one syllable alone has no boundary to judge
        else if (run[at]) unknown = true;
      }
      view.parts.push(chars.slice(from, end).join(""));
      if (before === "over" || after === "over") view.state = "over";
      else if (from > start) view.state = "miss";
      else if (unknown) view.state = "unknown";
      else if (known && before !== "free" && after !== "free") view.state = "hit";
    }
    return view;
  });
}

const jamoTyped = new Map();
const typed = (text) => Array.from(text, (char) => jamoTyped.get(char) ?? char).join("");
const hex = (bytes, between = " ") => Array.from(bytes, (byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(between);
const visible = (text) => text.replaceAll(" ", "▁").replaceAll("\n", "↵").replaceAll("\t", "⇥");

/** The insides of a chip: spaces and line ends made visible, swallowed boundaries marked. */
function inked(parts) {
  return parts.flatMap((part, i) => [
    ...(i ? [h("i", { class: "miss-mark" })] : []),
    ...part.split(/([ \t\r\n]+)/).filter(Boolean).flatMap((bit) =>
      /^[ \t\r\n]/.test(bit) ? Array.from(bit, (char) => (char === "\n" ? ["↵\n"] : [char === " " ? "▁" : "⇥"])).flat().map((mark) => h("b", {}, mark)) : [bit]),
  ]);
}

// ---- a pane: one tokenizer on the text

class Pane {
  constructor(number) {
    this.number = number;
    this.views = [];
    this.rows = [];
    this.select = h("select", { onchange: () => choose(this.number, Number(this.select.value)) });
    this.about = h("span", { class: "about" });
    this.figures = h("dl", { class: "figures" });
    this.list = h("div", { class: "tokens", role: "listbox", tabindex: 0, lang: "ko", onclick: (event) => this.clicked(event), onkeydown: (event) => this.keyed(event) });
    this.empty = h("p", { class: "empty" });
    this.flow = new Flow(this);
    this.box = h("section", { class: "pane" }, h("div", { class: "line" }, this.select, this.about), this.figures, this.list, this.empty, this.flow.box);
  }

  speak() {
    this.select.setAttribute("aria-label", `${say.tokenizer} ${"AB"[this.number]}`);
    this.select.replaceChildren(...[...(this.number ? [h("option", { value: -1 }, say.none)] : []), ...catalogue.map(({ name }, i) => h("option", { value: i }, name))]);
    this.select.value = state.shown[this.number];
    this.box.setAttribute("aria-label", `${say.tokenizer} ${"AB"[this.number]}`);
    this.list.setAttribute("aria-label", say.tokens);
    this.empty.textContent = say.empty;
    this.flow.speak();
  }

  /** Encode, and change only those chips that are not as they were. */
  show(judged) {
    this.tokenizer = made[state.shown[this.number]];
    this.box.hidden = !this.tokenizer;
    if (!this.tokenizer) return;
    const { kind, size } = this.tokenizer;
    this.about.textContent = `${kind} · ${say.size(number(size))}`;
    this.found = this.tokenizer.encode(state.text, { allowed: state.special ? "all" : [] });
    this.views = views(this.tokenizer, this.found, judged);
    this.list.hidden = !this.views.length;
    this.empty.hidden = !!this.views.length;
    this.flow.restart();
  }

  /** Draw the chips, a row for each line of the text; `others` are the spans of the other pane. */
  draw(others) {
    const rows = []; // [first token, last and one, what they look like]
    let first = 0, look = "";
    this.views.forEach((view, i) => {
      view.ring = others !== null && !others.has(`${view.start},${view.end}`);
      look += `${view.id} ${view.state} ${view.begins} ${view.ring} ${view.parts.join("|")}\n`;
      if (i + 1 < this.views.length && !view.parts.at(-1).includes("\n")) return;
      rows.push([first, i + 1, `${state.ids} ${look}`]);
      first = i + 1, look = "";
    });
    // Rows that are as they were stay: the browser lays out those alone that are new and in sight.
    let head = 0, tail = 0;
    const most = Math.min(rows.length, this.rows.length);
    while (head < most && rows[head][2] === this.rows[head][2]) head++;
    while (tail < most - head && rows.at(-1 - tail)[2] === this.rows.at(-1 - tail)[2]) tail++;
    const old = [...this.list.children];
    for (const row of old.slice(head, old.length - tail)) row.remove();
    const fresh = rows.slice(head, rows.length - tail)
      .map(([from, to]) => h("div", { role: "presentation" }, ...this.views.slice(from, to).map((view) => this.chip(view))));
    if (head) old[head - 1].after(...fresh);
    else this.list.prepend(...fresh);
    this.rows = rows;
  }

  /** The chip of a token. */
  at(index) {
    const row = this.rows.findIndex(([, end]) => index < end);
    return this.list.children[row].children[index - this.rows[row][0]];
  }

  chip({ id, state: what, begins, ring, parts }) {
    const names = ["chip", what, begins && `starts-${begins}`, ring && "ring"].filter(Boolean).join(" ");
    return h("span", { class: names, role: "option", "aria-selected": "false" }, ...inked(parts), state.ids ? h("small", {}, String(id)) : null);
  }

  drawFigures(judged, other) {
    const bytes = utf8.encode(state.text).length, n = this.views.length;
    const eojeols = state.text.split(/\s+/).filter(Boolean).length;
    const begun = new Set(this.views.map(({ start }) => start));
    const met = [...judged.gold].filter((at) => begun.has(at)).length;
    const over = this.views.filter(({ begins }) => begins === "over").length;
    const runs = new Set(judged.run.filter(Boolean));
    const known = [...runs].filter(({ shape }) => shape).length;
    const ratio = other?.views.length ? n / other.views.length - 1 : null;
    const cost = yardstick && this.tokenizer !== made[against] ? n / yardstick : null;
    const rows = [
      [say.tokens, number(n), ratio === null ? "" : `${signed(ratio)} ${say.against(other.tokenizer.name)}`],
      ...(cost === null ? [] : [[say.against(made[against].name), signed(cost - 1), `${number(n / cost)} ${say.tokens}`]]),
      [say.perEojeol, eojeols ? number(n / eojeols, 2) : "–"],
      [say.perToken, n ? number(bytes / n, 2) : "–"],
      [say.met, judged.gold.size ? `${number(met)} / ${number(judged.gold.size)}` : "–", runs.size ? say.ofKnown(percent(known / runs.size)) : ""],
      [say.inside, runs.size ? number(over) : "–"],
    ];
    this.figures.replaceChildren(...rows.map(([name, value, more]) => h("div", {}, h("dt", {}, name), h("dd", {}, value, more ? h("small", {}, more) : null))));
  }

  clicked(event) {
    const chip = event.target.closest(".chip");
    if (!chip) return;
    const row = [...this.list.children].indexOf(chip.parentNode);
    this.choose(this.rows[row][0] + [...chip.parentNode.children].indexOf(chip));
  }

  keyed(event) {
    const now = state.chosen?.pane === this ? state.chosen.index : -1;
    const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: this.views.length - 1 }[event.key];
    if (to === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    this.choose(Math.max(0, Math.min(this.views.length - 1, to)));
  }

  choose(index) {
    unmark();
    state.chosen = { pane: this, index };
    const chip = this.at(index);
    chip.setAttribute("aria-selected", "true");
    chip.id = "chosen";
    this.list.setAttribute("aria-activedescendant", "chosen");
    chip.scrollIntoView({ block: "nearest", inline: "nearest" });
    drawDetail();
  }
}

function unmark() {
  const chip = $("chosen");
  chip?.setAttribute("aria-selected", "false");
  chip?.removeAttribute("id");
  for (const pane of panes) pane.list.removeAttribute("aria-activedescendant");
  state.chosen = null;
}

// ---- a stream: ids one by one, as a model gives them

class Flow {
  constructor(pane) {
    this.pane = pane;
    this.play = h("button", { onclick: () => this.toggle() });
    this.one = h("button", { onclick: () => (this.stop(), this.step()) });
    this.again = h("button", { onclick: () => (this.stop(), this.restart(), this.draw()) });
    this.out = h("p", { class: "out", lang: "ko", hidden: true });
    this.held = h("p", { class: "held", hidden: true });
    this.box = h("div", { class: "flow" }, h("div", { class: "line tools" }, this.play, this.one, this.again), this.out, this.held);
  }

  speak() {
    this.play.textContent = `${this.clock ? "■" : "▶"} ${this.clock ? say.pause : say.stream}`;
    this.one.textContent = say.step;
    this.again.textContent = say.restart;
    if (!this.out.hidden) this.draw();
  }

  restart() {
    this.stop();
    this.at = 0;
    this.stream = this.pane.tokenizer?.stream();
    this.text = this.last = "";
    this.waiting = [];
    this.out.hidden = this.held.hidden = true;
  }

  toggle() {
    if (this.clock) return this.stop();
    if (this.at >= this.pane.views.length) this.restart();
    this.clock = setInterval(() => this.step(), BEAT);
    this.speak();
  }

  stop() {
    clearInterval(this.clock);
    this.clock = null;
    if (catalogue) this.speak();
  }

  step() {
    const { found } = this.pane;
    if (this.at >= found.ids.length) return this.stop();
    const id = found.ids[this.at++];
    this.text += this.last;
    this.last = this.stream.push(id);
    this.waiting = this.last ? [] : [...this.waiting, id];
    if (this.at === found.ids.length) {
      this.last += this.stream.finish();
      this.waiting = [];
      this.stop();
    }
    this.draw();
  }

  draw() {
    const begun = this.at > 0;
    this.out.hidden = this.held.hidden = !begun;
    this.out.replaceChildren(this.text, h("mark", {}, this.last));
    this.held.textContent = `${this.at} / ${this.pane.views.length} · ${this.waiting.length ? say.held(this.waiting.join(" ")) : say.nothingHeld}`;
  }
}

// ---- the chosen token

function drawDetail() {
  const box = $("detail");
  if (!state.chosen) return box.replaceChildren();
  const { pane, index } = state.chosen, { tokenizer, found } = pane;
  const view = pane.views[index], id = view.id, bytes = tokenizer.bytes(id), score = tokenizer.score(id);
  const spelling = tokenizer.token(id);
  const facts = [[say.id, number(id)], [say.place, `${view.start}–${view.end}`]];
  if (score !== null) facts.push([say.score, number(score, 3)]);
  else if (tokenizer.model.joined && id >= tokenizer.nBytes && id < tokenizer.firstSpecial) facts.push([say.rank, number(id - tokenizer.nBytes)]);
  const remark = id >= tokenizer.firstSpecial ? say.isSpecial : view.state === "bytes" && id < tokenizer.nBytes ? say.isByte
    : { hit: say.hit, over: say.over }[view.begins] ?? "";
  box.replaceChildren(
    h("h2", {}, `${say.token} `, h("span", { class: `chip ${view.state}`, lang: "ko" }, visible(typed(view.parts.join("")))), " ", spelling === view.parts.join("") ? null : h("code", {}, spelling)),
    h("p", {}, facts.map(([name, value]) => `${name} ${value}`).join(" · "), remark && ` · ${remark}`),
    h("div", { class: "columns" }, h("div", {}, charactersOf(bytes), wordOf(view)), h("div", {}, wayOf(tokenizer, found, index))),
  );
}

/** A row a character: what it is, its code point, its jamo, its bytes. */
function charactersOf(bytes) {
  const text = asText(bytes);
  if (text === null) return h("p", {}, `${say.utf8} `, h("code", {}, hex(bytes)));
  const rows = Array.from(text).slice(0, 40).map((char) => h("tr", {},
    h("td", { lang: "ko" }, visible(typed(char))),
    h("td", {}, h("code", {}, `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`)),
    h("td", { lang: "ko" }, isSyllable(char) ? Array.from(typed(split(char))).join(" ") : "–"),
    h("td", {}, h("code", {}, hex(utf8.encode(char))))));
  const names = [say.character, say.code, say.jamo, say.utf8].map((name) => h("th", { scope: "col" }, name));
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...names)), h("tbody", {}, ...rows)));
}

/** The morphemes of the word that the token stands in. */
function wordOf({ start, end }) {
  const run = judged.run.slice(start, end).find(Boolean);
  if (!run || run.end - run.start === 1) return null;
  const rows = (run.shape?.row ?? "").split("\n").filter(Boolean).map((line) => {
    const [from, to, tag, form] = line.split(" ");
    const name = CLASSES[tag[0]]?.[root.lang === "ko" ? 1 : 0] ?? "";
    return h("tr", {}, h("td", { lang: "ko" }, form || run.word.slice(from, to)), h("td", {}, h("code", {}, tag), " ", h("span", { class: "tag" }, name)));
  });
  const names = [say.form, say.tag].map((name) => h("th", { scope: "col" }, name));
  return h("div", {}, h("h3", {}, `${say.word} `, h("span", { lang: "ko" }, run.word)),
    rows.length ? h("table", {}, h("thead", {}, h("tr", {}, ...names)), h("tbody", {}, ...rows)) : h("p", { class: "tag" }, say.notKnown));
}

/** How the model came to the tokens of this pretoken. */
function wayOf(tokenizer, found, index) {
  const pretoken = found.pretokens.find(({ first, count }) => index >= first && index < first + count);
  if (!pretoken || pretoken.special) return null;
  const { model } = tokenizer;
  if (model.nBest) return nBestOf(tokenizer, pretoken.text);
  if (model.replay) return replayOf(tokenizer, pretoken.text);
  return h("p", { class: "tag" }, tokenizer.kind === "word" ? say.wholeWord : say.longest);
}

const chips = (texts, fresh = -1) => h("span", { class: "pieces", lang: "ko" }, ...texts.map((text, i) => h("span", { class: i === fresh ? "chip fresh" : "chip" }, visible(text))));

function nBestOf(tokenizer, pretoken) {
  const ways = tokenizer.model.nBest(pretoken, N_BEST);
  const rows = ways.map(({ ids, score }, i) => h("tr", { class: i ? null : "now" },
    h("td", { class: "figure" }, number(score, 3)), h("td", { class: "figure" }, i ? number(score - ways[0].score, 3) : ""),
    h("td", {}, chips(ids.map((id) => typed(join(tokenizer.token(id))))))));
  const names = [say.score, say.behind, say.tokens].map((name, i) => h("th", { scope: "col", class: i < 2 ? "figure" : null }, name));
  return h("div", {}, h("h3", {}, say.nBest), h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": say.nBest }, h("table", {}, h("thead", {}, h("tr", {}, ...names)), h("tbody", {}, ...rows))));
}

function replayOf(tokenizer, pretoken) {
  const readable = (part) => (tokenizer.kind === "bpe-bytes" ? asText(unspell(part)) ?? hex(unspell(part), "·") : typed(part));
  const steps = [{ parts: tokenizer.model.letters(pretoken), at: -1 }, ...tokenizer.model.replay(pretoken)];
  const last = steps.length - 1;
  const line = h("p", { class: "pieces" }), told = h("p", { class: "tag" });
  const range = h("input", { type: "range", min: 0, max: last, value: last, "aria-label": say.replay, oninput: () => draw(Number(range.value)) });
  let clock;
  const play = h("button", {
    "aria-label": say.replay,
    onclick: () => {
      clearInterval(clock);
      let k = 0;
      draw(0);
      clock = setInterval(() => (k < last && play.isConnected ? draw(++k) : clearInterval(clock)), 3 * BEAT);
    },
  }, "▶");
  const draw = (k) => {
    const { parts, at, rank } = steps[k];
    range.value = k;
    range.setAttribute("aria-valuetext", say.join(k, last));
    line.replaceChildren(chips(parts.map(readable), at));
    told.textContent = `${say.join(k, last)}: ${k ? say.joined(visible(readable(parts[at])), number(rank)) : say.start}`;
  };
  draw(last);
  return h("div", {}, h("h3", {}, say.replay), h("p", {}, play, " ", range), line, told);
}

// ---- the page

const panes = [new Pane(0), new Pane(1)];
let judged = judgement([]);
let yardstick = 0; // tokens of the text in the tokenizer that all are counted against

/** Everything that follows from the text and the tokenizers. */
function update() {
  unmark();
  judged = judgement(Array.from(state.text));
  for (const pane of panes) pane.show(judged);
  yardstick = made[against]?.encode(state.text, { allowed: state.special ? "all" : [] }).ids.length ?? 0;
  const shown = panes.filter(({ tokenizer }) => tokenizer);
  const spans = shown.map(({ views }) => new Set(views.map(({ start, end }) => `${start},${end}`)));
  shown.forEach((pane, i) => {
    pane.draw(shown.length > 1 ? spans[1 - i] : null);
    pane.drawFigures(judged, i ? shown[0] : null);
  });
  root.classList.toggle("alone", shown.length < 2);
  drawDetail();
}

function setText(text) {
  $("text").value = text;
  typedText();
}

function typedText() {
  state.text = $("text").value.replace(/\p{Surrogate}/gu, "\ufffd");
  update();
}

async function choose(pane, i) {
  if (i >= 0) await tokenizerOf(i);
  state.shown[pane] = i;
  panes[pane].select.value = i;
  update();
}

function speak(tongue) {
  root.lang = tongue;
  say = WORDS[tongue];
  for (const button of document.querySelectorAll("#tongues button")) button.setAttribute("aria-pressed", String(button.dataset.tongue === tongue));
  for (const element of document.querySelectorAll("[data-say]")) element.textContent = say[element.dataset.say];
  for (const element of document.querySelectorAll("[data-say-label]")) element.setAttribute("aria-label", say[element.dataset.sayLabel]);
  $("samples").replaceChildren(...SAMPLES[tongue].map((name, i) => h("button", { onclick: () => setText(SAMPLES.text[i]) }, name)));
  $("told").textContent = "";
  shade(root.dataset.shade);
  if (!catalogue) return;
  for (const pane of panes) pane.speak();
  const shown = panes.filter(({ tokenizer }) => tokenizer);
  shown.forEach((pane, i) => pane.drawFigures(judged, i ? shown[0] : null));
  for (const pane of shown) pane.about.textContent = `${pane.tokenizer.kind} · ${say.size(number(pane.tokenizer.size))}`;
  drawDetail();
}

function shade(name) {
  root.dataset.shade = name;
  $("shade").textContent = name === "dark" ? `☀ ${say.light}` : `☾ ${say.dark}`;
}

async function openFile(file) {
  if (!file) return;
  const text = asText(new Uint8Array(await file.arrayBuffer()));
  if (text === null) return ($("told").textContent = say.notText(file.name));
  const chars = Array.from(text);
  const kept = chars.slice(0, MOST_TEXT);
  setText(kept.join(""));
  $("told").textContent = (kept.length < chars.length ? say.cut : say.dropped)(file.name, number(kept.length));
}

// ---- the address: text squeezed into the fragment, which no server ever sees

async function fragment() {
  const bytes = await through(utf8.encode(state.text), new CompressionStream("deflate-raw"));
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  const rest = { a: state.shown[0], b: state.shown[1], lang: root.lang, ...(state.special ? { special: 1 } : {}), ...(state.ids ? { ids: 1 } : {}) };
  return `#${new URLSearchParams({ ...rest, t: text })}`;
}

async function readFragment() {
  const asked = new URLSearchParams(location.hash.slice(1));
  if (WORDS[asked.get("lang")]) speak(asked.get("lang"));
  const number = (name, fallback, least) => {
    const i = asked.has(name) ? Number(asked.get(name)) : fallback;
    return Number.isInteger(i) && i >= least && i < catalogue.length ? i : fallback;
  };
  state.shown = [number("a", 0, 0), number("b", catalogue.length > 1 ? 1 : -1, -1)];
  state.special = $("special").checked = asked.has("special");
  showIds(asked.has("ids"));
  if (asked.has("t")) {
    try {
      const bytes = fromBase64(asked.get("t").replaceAll("-", "+").replaceAll("_", "/"));
      $("text").value = new TextDecoder("utf-8", { ignoreBOM: true }).decode(await through(bytes, new DecompressionStream("deflate-raw")));
    } catch {
      // an address that was cut short is no reason to show nothing
    }
  }
}

function showIds(on) {
  state.ids = on;
  $("ids").setAttribute("aria-pressed", String(on));
}

async function start() {
  $("link").before(h("button", { id: "ids", "data-say": "show", "aria-pressed": "false", onclick: () => (showIds(!state.ids), update()) }));
  const dark = matchMedia("(prefers-color-scheme: dark)");
  root.dataset.shade = dark.matches ? "dark" : "light";
  dark.addEventListener("change", () => shade(dark.matches ? "dark" : "light"));
  speak((navigator.language || "en").startsWith("ko") ? "ko" : "en");
  $("shade").addEventListener("click", () => shade(root.dataset.shade === "dark" ? "light" : "dark"));
  for (const button of document.querySelectorAll("#tongues button")) button.addEventListener("click", () => speak(button.dataset.tongue));
  $("text").addEventListener("input", typedText);
  $("special").addEventListener("change", () => ((state.special = $("special").checked), update()));
  $("file").addEventListener("change", () => openFile($("file").files[0]));
  $("link").addEventListener("click", async () => {
    location.replace(await fragment());
    const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    $("told").textContent = copied ? say.linked : say.linkHere;
  });
  const input = $("input");
  for (const [name, on] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
    document.addEventListener(name, (event) => {
      event.preventDefault();
      input.classList.toggle("over", on);
      if (name !== "drop") return;
      if (event.dataTransfer.files.length) openFile(event.dataTransfer.files[0]);
      else setText(event.dataTransfer.getData("text/plain"));
    });
  }
  try {
    ({ catalogue, against, shared } = await unpack("catalogue"));
    for (const [conjoining, letter] of shared.typed) jamoTyped.set(conjoining, letter);
    $("panes").append(...panes.map(({ box }) => box));
    panes[1].box.hidden = true;
    $("text").value = SAMPLES.text[0];
    await readFragment();
    for (const pane of panes) pane.speak();
    await tokenizerOf(state.shown[0]);
    typedText();
    root.dataset.first = Math.round(performance.now()); // milliseconds until the first tokens
    await Promise.all([readLexicon(), ...[...state.shown, against].filter((i) => i >= 0).map(tokenizerOf)]);
    typedText();
  } catch (error) {
    $("told").textContent = say.broken;
    throw error;
  }
  if (catalogue.length === 1) panes[0].select.replaceWith(h("h2", {}, catalogue[0].name));
  window.addEventListener("hashchange", async () => {
    await readFragment();
    for (const [pane, i] of state.shown.entries()) await choose(pane, i);
    typedText();
  });
  root.dataset.ready = Math.round(performance.now());
}

await start();
