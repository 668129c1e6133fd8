// A koktok tokenizer in JavaScript: the ids, offsets (none trimmed) and text of koktok.Tokenizer, for every kind of model.
//
// `new Tokenizer(made, tables)` takes what koktok/report/playground/payload.py makes of a tokenizer. Offsets are code points of
// the text that was passed, half-open, as in Python; strings are cut into arrays of code points where that matters.

const SYLLABLES = 0xac00;
const CUT_MARK = "\u2000"; // a cut between a space that a text begins with and the one before the first word
const MARK = "##"; // before a WordPiece piece that continues a word
const MAX_CHARS = 100; // a longer word is unknown to WordPiece
const STEPS = 256; // scores are multiples of 1/256; costs here are whole numbers of such steps, so that sums are exact
const BYTE_MARGIN = 4, UNKNOWN_PENALTY = 10;
const JOINABLE = /[\u1100-\u1112\u1161-\u1175\u11a8-\u11c2가-힣]+/g;
const WHITE_SPACE = /[\t\n\v\f\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+$/;
const CACHED = 1 << 15; // solved pretokens kept

const utf8 = new TextEncoder();
const isPrintable = (byte) => (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte !== 0xad);
const BYTE_CHARS = []; // how GPT-2 spells bytes
for (let byte = 0, next = 0x100; byte < 256; byte++) {
  BYTE_CHARS.push(String.fromCharCode(isPrintable(byte) ? byte : next++));
}
const BYTE_OF = new Map(BYTE_CHARS.map((char, byte) => [char, byte]));

const spell = (text) => Array.from(utf8.encode(text), (byte) => BYTE_CHARS[byte]).join("");
const unspell = (spelled) => Array.from(spelled, (char) => BYTE_OF.get(char));
const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
/** Conjoining jamo composed to syllables, nothing else touched. */
const join = (text) => text.replace(JOINABLE, (run) => run.normalize("NFC"));

/** The conjoining jamo of a syllable, by arithmetic. */
function split(syllable) {
  const place = syllable.codePointAt(0) - SYLLABLES;
  const tail = place % 28;
  const open = String.fromCharCode(0x1100 + Math.floor(place / 588), 0x1161 + (Math.floor(place / 28) % 21));
  return tail ? open + String.fromCharCode(0x11a7 + tail) : open;
}

const isSyllable = (char) => char >= "가" && char <= "힣";
const mayGrow = (char) =>
  (char >= "\u1100" && char <= "\u1112") || (isSyllable(char) && (char.codePointAt(0) - SYLLABLES) % 28 === 0);

/** Raw text to normal text, with the code points that each normal one came from. */
class Normalizer {
  constructor({ folds, lone, repeats, whole, nfc = true }, { opaque, continues, typed }) {
    this.composes = nfc; // what was published as ranks does not
    this.folds = new Map(folds);
    this.lone = lone ? new RegExp(lone, "gu") : null;
    this.typed = new Map(typed);
    this.repeats = repeats ? new RegExp(repeats, "gu") : null;
    this.whole = whole === null ? null : new Set(whole);
    this.opaque = new RegExp(`([${opaque}]+)`, "u");
    this.continues = new RegExp(`[${continues}]`, "u");
  }

  /** NFC of Unicode 9, whatever Unicode the browser has: younger marks and compositions are walls. */
  nfc(text) {
    if (!this.composes || text.normalize("NFC") === text) return text;
    return text.split(this.opaque).map((part, i) => (i % 2 ? part : part.normalize("NFC"))).join("");
  }

  align(text) {
    const raw = Array.from(text);
    let chars = raw;
    let starts = raw.map((_, i) => i);
    if (this.folds.size && raw.some((char) => this.folds.has(char))) {
      chars = [], starts = [];
      raw.forEach((char, i) => {
        for (const made of this.folds.has(char) ? this.folds.get(char) : [char]) chars.push(made), starts.push(i);
      });
    }
    let ends = starts.map((i) => i + 1);
    const folded = chars.join("");
    if (this.nfc(folded) !== folded) [chars, starts, ends] = this.composed(chars, starts);
    if (this.lone) chars = Array.from(chars.join("").replace(this.lone, (jamo) => this.typed.get(jamo)));
    if (this.repeats) {
      const gone = new Set();
      const text = chars.join("");
      let at = 0, units = 0; // code points and UTF-16 units so far
      for (const { index } of text.matchAll(this.repeats)) {
        while (units < index) units += chars[at++].length;
        gone.add(at);
      }
      if (gone.size) [chars, starts, ends] = [chars, starts, ends].map((list) => list.filter((_, i) => !gone.has(i)));
    }
    if (this.whole) {
      const made = chars.map((char) => Array.from(this.apart(char)));
      starts = made.flatMap((parts, i) => parts.map(() => starts[i]));
      ends = made.flatMap((parts, i) => parts.map(() => ends[i]));
      chars = made.flat();
    }
    // What was normal already has its own places, also where NFC and jamo went to and fro.
    if (chars !== raw && chars.join("") === text) starts = raw.map((_, i) => i), ends = starts.map((i) => i + 1);
    return { chars, starts, ends };
  }

  /** NFC, segment by segment: what is made together shares its span. */
  composed(chars, at) {
    const made = [], starts = [], ends = [];
    for (let i = 0, j; i < chars.length; i = j) {
      for (j = i + 1; j < chars.length && this.continues.test(chars[j]); j++);
      const segment = chars.slice(i, j).join("");
      const normal = this.nfc(segment);
      if (normal === segment) {
        for (let k = i; k < j; k++) this.push(starts, ends, at[k], at[k] + 1, 1), made.push(chars[k]);
      } else {
        const fresh = Array.from(normal);
        this.push(starts, ends, at[i], at[j - 1] + 1, fresh.length);
        made.push(...fresh);
      }
    }
    return [made, starts, ends];
  }

  /** A span for `count` characters; those before that came from the same raw character (ﬁ + accent) take it, too. */
  push(starts, ends, start, end, count) {
    let k = ends.length;
    while (k && ends[k - 1] > start) k--;
    for (let i = k; i < starts.length; i++) start = Math.min(start, starts[i]);
    for (let i = k; i < starts.length; i++) starts[i] = start, ends[i] = end;
    for (let i = 0; i < count; i++) starts.push(start), ends.push(end);
  }

  /** A syllable without a piece of its own: the open syllable and its tail if that one has a piece, else jamo. */
  apart(char) {
    if (!isSyllable(char) || this.whole.has(char)) return char;
    const place = char.codePointAt(0) - SYLLABLES;
    const open = String.fromCharCode(SYLLABLES + place - (place % 28));
    return open !== char && this.whole.has(open) ? open + split(char)[2] : split(char);
  }
}

/** Where text is cut into pretokens: a matrix of character classes, each cut told by its two neighbours. */
class Pattern {
  constructor({ classes, follows, regex }) {
    this.regex = regex ? new RegExp(regex, "gu") : null; // a published pattern
    if (regex) return;
    this.follows = follows; // follows[a][b] is "1" where a character of class b goes on with one of class a
    this.table = new Uint8Array(0x110000).fill(classes.length);
    classes.forEach((ranges, i) => {
      for (let k = 0; k < ranges.length; k += 2) this.table.fill(i, ranges[k], ranges[k + 1] + 1);
    });
  }

  /** Ends of the pretokens of an array of characters. */
  ends(chars) {
    if (this.regex) {
      let end = 0;
      return (chars.join("").match(this.regex) ?? []).map((part) => (end += Array.from(part).length));
    }
    const classes = chars.map((char) => this.table[char.codePointAt(0)]);
    const found = [];
    for (let i = 1; i < chars.length; i++) {
      if (this.follows[classes[i - 1]][classes[i]] === "0") found.push(i);
    }
    if (chars.length) found.push(chars.length);
    return found;
  }
}

/** What every model shares: pieces by string, ids behind the bytes, and the bytes of what is no piece. */
class Model {
  constructor(made) {
    this.first = made.bytes;
    this.pieces = made.pieces;
    this.ranks = new Map(made.pieces.map((piece, rank) => [piece, rank]));
    this.longest = made.pieces.reduce((most, piece) => Math.max(most, piece.length), 1);
  }

  /** Ids and spans of consecutive parts of a pretoken, given as [string, length in code points]. */
  found(parts) {
    const ids = [], spans = [];
    let at = 0;
    for (const [part, length] of parts) {
      const rank = this.ranks.get(part);
      for (const id of rank === undefined ? utf8.encode(part) : [this.first + rank]) {
        ids.push(id);
        spans.push([at, at + length]);
      }
      at += length;
    }
    return { ids, spans };
  }
}

/** The segmentation of least cost by Viterbi; of equal ones that whose last piece starts earliest. */
class Unigram extends Model {
  constructor(made) {
    super(made);
    let cost = 0;
    this.costs = made.scores.map((step) => (cost += step));
    const worst = this.costs.at(-1) ?? 0;
    this.unknown = Math.max(6 * worst + BYTE_MARGIN * STEPS, worst) + UNKNOWN_PENALTY * STEPS;
    this.prefixes = new Set();
    for (const piece of made.pieces) {
      for (let end = piece.length - 1; end > 0; end--) {
        const prefix = piece.slice(0, end);
        if (this.prefixes.has(prefix) || this.ranks.has(prefix)) break; // its own prefixes are, or will be, there
        this.prefixes.add(prefix);
      }
    }
  }

  /** For every start, calls `visit(start, end, cost)` for the pieces there, from short to long. */
  arcs(chars, visit) {
    for (let start = 0; start < chars.length; start++) {
      let piece = chars[start], end = start + 1;
      if (!this.ranks.has(piece)) visit(start, end, this.unknown); // all characters of pieces are pieces
      for (;;) {
        const rank = this.ranks.get(piece);
        if (rank !== undefined) visit(start, end, this.costs[rank]);
        else if (!this.prefixes.has(piece)) break;
        if (end === chars.length) break;
        piece += chars[end++];
      }
    }
  }

  encode(pretoken) {
    const chars = Array.from(pretoken);
    const best = new Float64Array(chars.length + 1).fill(Infinity);
    const starts = new Int32Array(chars.length + 1);
    best[0] = 0;
    this.arcs(chars, (start, end, cost) => {
      if (best[start] + cost < best[end]) best[end] = best[start] + cost, starts[end] = start;
    });
    return this.found(this.between(chars, this.back(chars.length, (end) => starts[end])));
  }

  /** The `n` best segmentations with their scores, best first. */
  nBest(pretoken, n) {
    const chars = Array.from(pretoken);
    const into = chars.map(() => []); // into[end - 1]: [start, cost], starts ascending
    this.arcs(chars, (start, end, cost) => into[end - 1].push([start, cost]));
    const paths = [[[0, 0, 0]]]; // for every end the n best: [cost, last start, which path to it]
    for (const ways of into) {
      const all = ways.flatMap(([start, cost]) => paths[start].map((path, k) => [path[0] + cost, start, k]));
      paths.push(all.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]).slice(0, n));
    }
    return paths[chars.length].map(([cost], rank) => {
      let k = rank;
      const cuts = this.back(chars.length, (end) => {
        const path = paths[end][k];
        k = path[2];
        return path[1];
      });
      return { ...this.found(this.between(chars, cuts)), score: -cost / STEPS || 0 };
    });
  }

  back(size, before) {
    const cuts = [size];
    while (cuts.at(-1)) cuts.push(before(cuts.at(-1)));
    return cuts.reverse();
  }

  between(chars, cuts) {
    return cuts.slice(1).map((end, i) => [chars.slice(cuts[i], end).join(""), end - cuts[i]]);
  }
}

/** A binary heap of numbers, the least on top. */
class Heap {
  constructor() {
    this.keys = [];
  }

  get size() {
    return this.keys.length;
  }

  push(key) {
    let i = this.keys.push(key) - 1;
    for (let up; i && this.keys[(up = (i - 1) >> 1)] > key; i = up) this.keys[i] = this.keys[up];
    this.keys[i] = key;
  }

  pop() {
    const top = this.keys[0], key = this.keys.pop(), size = this.keys.length;
    if (!size) return top;
    let i = 0;
    for (let down; (down = 2 * i + 1) < size; i = down) {
      if (down + 1 < size && this.keys[down + 1] < this.keys[down]) down++;
      if (this.keys[down] >= key) break;
      this.keys[i] = this.keys[down];
    }
    this.keys[i] = key;
    return top;
  }
}

/** The joined piece of lowest rank first, leftmost of equals, until nothing joins. */
class Bpe extends Model {
  encode(pretoken) {
    return this.found(this.joined(Array.from(pretoken)).map((part) => [part, Array.from(part).length]));
  }

  /** The parts of a pretoken; `told(place, left, right, rank)` hears of every join. */
  joined(chars, told) {
    const parts = [...chars]; // a part that was joined to its left neighbour is ""
    const size = parts.length;
    const right = parts.map((_, i) => i + 1), left = parts.map((_, i) => i - 1);
    const heap = new Heap(); // rank · size + place: sorts by rank, then from the left
    const offer = (i, j) => {
      const rank = this.ranks.get(parts[i] + parts[j]);
      if (rank !== undefined) heap.push(rank * size + i);
    };
    for (let i = 0; i + 1 < size; i++) offer(i, i + 1);
    while (heap.size) {
      const key = heap.pop();
      const i = key % size, rank = (key - i) / size, j = right[i];
      if (!parts[i] || j >= size || parts[i] + parts[j] !== this.pieces[rank]) continue; // joined to another since
      told?.(i, parts[i], parts[j], rank);
      parts[i] = this.pieces[rank];
      parts[j] = "";
      right[i] = right[j];
      if (right[i] < size) left[right[i]] = i, offer(i, right[i]);
      if (left[i] >= 0) offer(left[i], i);
    }
    return parts.filter(Boolean);
  }

  letters(pretoken) {
    return Array.from(pretoken);
  }

  /** Every join in its order: `{ rank, parts }`, the parts as they are behind it. */
  replay(pretoken) {
    const steps = [];
    const parts = this.letters(pretoken);
    const now = [...parts];
    this.joined(parts, (i, left, right, rank) => {
      now[i] = left + right;
      now[now.findIndex((part, k) => k > i && part)] = "";
      steps.push({ rank, at: now.slice(0, i).filter(Boolean).length, parts: now.filter(Boolean) });
    });
    return steps;
  }
}

/** BPE over the bytes of UTF-8: a token that holds part of a character spans all of it. */
class ByteBpe extends Bpe {
  constructor(made) {
    super(made);
    this.wholes = made.wholes; // a pretoken that is a piece is not joined from its bytes: tiktoken's way
  }

  encode(pretoken) {
    const spelled = spell(pretoken);
    const parts = this.wholes && this.ranks.has(spelled) ? [spelled] : this.joined(Array.from(spelled));
    return ofBytes(pretoken, this.found(parts.map((part) => [part, part.length])));
  }

  letters(pretoken) {
    return Array.from(spell(pretoken));
  }
}

/** Spans over the bytes of a pretoken as spans over its characters. */
function ofBytes(pretoken, { ids, spans }) {
  const owner = Array.from(pretoken).flatMap((char, i) => Array(utf8.encode(char).length).fill(i));
  return { ids, spans: spans.map(([start, end]) => [owner[start], owner[end - 1] + 1]) };
}

/** A pretoken that spells a special token goes in parts, each a word of its own. */
class Guarded extends Model {
  constructor(made) {
    super(made);
    this.unknown = made.unknown;
    const listed = made.specials.slice(0, made.unknown - made.bytes - made.pieces.length + 1).map((token) => Array.from(token));
    const guard = listed.filter((token) => token.length > 1)
      .map(([head, ...rest]) => `${escaped(head)}(?=${escaped(rest.join(""))})`).join("|");
    this.guard = guard ? new RegExp(`(${guard})`, "u") : null;
  }

  encode(pretoken) {
    const ids = [], spans = [];
    let at = 0;
    for (const part of this.guard ? pretoken.split(this.guard) : [pretoken]) {
      if (!part) continue;
      const found = this.word(part);
      ids.push(...found.ids);
      spans.push(...found.spans.map(([start, end]) => [at + start, at + end]));
      at += Array.from(part).length;
    }
    return { ids, spans };
  }
}

/** The longest piece from the left, again and again; a word with an unknown part is all unknown. */
class WordPiece extends Guarded {
  word(text) {
    return this.pieced(text, MAX_CHARS);
  }

  pieced(text, most) {
    const word = Array.from(text.replace(/^ +/, ""));
    const spaces = text.length - word.join("").length;
    const ids = [], spans = [];
    for (let start = 0; start < word.length; ) {
      let end = word.length > most ? start : Math.min(word.length, start + this.longest), rank;
      for (; end > start; end--) {
        rank = this.ranks.get((start ? MARK : "") + word.slice(start, end).join(""));
        if (rank !== undefined) break;
      }
      if (end === start) return { ids: [this.unknown], spans: [[spaces, spaces + word.length]] };
      ids.push(this.first + rank);
      spans.push([spaces + start, spaces + end]);
      start = end;
    }
    return { ids, spans };
  }
}

/** WordPiece over bytes, spaces included; nothing is too long. */
class ByteWordPiece extends WordPiece {
  word(text) {
    return ofBytes(text, this.pieced(spell(text), Infinity));
  }
}

/** A pretoken is one token, or unknown. */
class Word extends Guarded {
  word(text) {
    const rank = this.ranks.get(text);
    return { ids: [rank === undefined ? this.unknown : this.first + rank], spans: [[0, Array.from(text).length]] };
  }
}

/** The longest listed piece from the left; bytes for what is not listed. */
class LongestMatch extends Model {
  encode(pretoken) {
    const chars = Array.from(pretoken), parts = [];
    for (let start = 0; start < chars.length; ) {
      let end = Math.min(chars.length, start + this.longest);
      while (end > start + 1 && !this.ranks.has(chars.slice(start, end).join(""))) end--;
      parts.push([chars.slice(start, end).join(""), end - start]);
      start = end;
    }
    return this.found(parts);
  }
}

const MODELS = {
  unigram: Unigram, bpe: Bpe, "bpe-bytes": ByteBpe, wordpiece: WordPiece, "wordpiece-bytes": ByteWordPiece, word: Word,
  syllable: LongestMatch, jamo: LongestMatch, ngram: LongestMatch, morpheme: LongestMatch,
};

class Tokenizer {
  constructor(made, tables) {
    Object.assign(this, { name: made.name, kind: made.kind, nBytes: made.bytes, pieces: made.pieces, specials: made.specials });
    this.size = made.bytes + made.pieces.length + made.specials.length;
    this.firstSpecial = this.size - made.specials.length;
    this.made = made;
    this.normalizer = new Normalizer(made.normalizer, tables);
    this.pattern = new Pattern(made.pattern);
    this.model = new MODELS[made.kind](made);
    this.byLength = [...made.specials].sort((a, b) => Array.from(b).length - Array.from(a).length);
    this.cache = new Map();
  }

  /** The string of an id. */
  token(id) {
    if (id < this.nBytes) return `<0x${id.toString(16).toUpperCase().padStart(2, "0")}>`;
    return id < this.firstSpecial ? this.pieces[id - this.nBytes] : this.specials[id - this.firstSpecial];
  }

  /** The bytes that an id stands for in a text; a special token's are those of its name. */
  bytes(id) {
    if (id < this.nBytes) return [id];
    const token = this.token(id);
    if (id >= this.firstSpecial) return Array.from(utf8.encode(token));
    const text = this.kind.startsWith("wordpiece") && token.startsWith(MARK) ? token.slice(MARK.length) : token;
    return this.kind.endsWith("-bytes") ? unspell(text) : Array.from(utf8.encode(join(text)));
  }

  /** The score of a piece of a unigram vocabulary. */
  score(id) {
    const cost = this.model.costs?.[id - this.nBytes];
    return cost === undefined ? null : -cost / STEPS || 0;
  }

  /** What `decode(encode(text))` gives back. */
  normalize(text) {
    const chars = this.normalizer.align(text).chars.join("");
    return this.normalizer.composes ? join(chars) : chars;
  }

  /**
   * Ids with `spans` into the raw text; `pretokens` are { text, first, count }: which tokens are of one pretoken.
   * Special tokens are read as such where `allowed` says so, else they are text.
   */
  encode(text, { allowed = [] } = {}) {
    const found = { ids: [], spans: [], pretokens: [] };
    let base = 0;
    for (const [part, special] of this.parts(text, allowed === "all" ? this.byLength : allowed)) {
      const size = Array.from(part).length;
      if (special) {
        const id = this.firstSpecial + this.specials.indexOf(special);
        found.pretokens.push({ text: special, first: found.ids.length, count: 1, special: true });
        found.ids.push(id);
        found.spans.push([base, base + size]);
      } else this.encodePart(part, base, found);
      base += size;
    }
    return found;
  }

  encodePart(text, base, found) {
    const { chars, starts, ends } = this.normalizer.align(text);
    if (this.made.prefix && chars.length) { // what is put before has the place of what is behind it
      const each = this.made.prefix === "each";
      const marked = !each && !base && chars[0] === " ";
      const before = [...(each || marked || !(base + starts[0]) ? [" "] : []), ...(marked ? [CUT_MARK] : [])];
      const [start, end] = marked ? [0, 1] : [starts[0], ends[0]];
      chars.unshift(...before);
      starts.unshift(...before.map(() => start));
      ends.unshift(...before.map(() => end));
    }
    let at = 0;
    for (const end of this.pattern.ends(chars)) {
      const pretoken = chars.slice(at, end).join("");
      if (this.made.prefix && pretoken === CUT_MARK) { at = end; continue; } // a cut
      const { ids, spans } = this.solve(pretoken);
      found.pretokens.push({ text: pretoken, first: found.ids.length, count: ids.length });
      for (let i = 0; i < ids.length; i++) {
        found.ids.push(ids[i]);
        found.spans.push([base + starts[at + spans[i][0]], base + ends[at + spans[i][1] - 1]]);
      }
      at = end;
    }
  }

  /** The text cut at allowed special tokens, the longest first: [part, token or ""]. */
  parts(text, allowed) {
    if (!allowed.length) return text ? [[text, ""]] : [];
    const parts = [];
    for (const [i, part] of text.split(new RegExp(`(${allowed.map(escaped).join("|")})`, "u")).entries()) {
      if (i % 2) {
        const before = parts.at(-1);
        const blank = this.made.lstrip.includes(part) && before && !before[1] ? WHITE_SPACE.exec(before[0])?.[0] ?? "" : "";
        if (blank) before[0] = before[0].slice(0, -blank.length);
        if (before && !before[0]) parts.pop();
        parts.push([blank + part, part]);
      } else if (part) parts.push([part, ""]);
    }
    return parts;
  }

  solve(pretoken) {
    let solved = this.cache.get(pretoken);
    if (!solved) {
      if (this.cache.size >= CACHED) this.cache.clear();
      this.cache.set(pretoken, (solved = this.model.encode(pretoken)));
    }
    return solved;
  }

  decode(ids) {
    const stream = this.stream();
    return ids.map((id) => stream.push(id)).join("") + stream.finish();
  }

  stream() {
    return new Stream(this);
  }
}

/** Ids one by one to text that is settled: what went out is never taken back. */
class Stream {
  constructor(tokenizer) {
    this.tokenizer = tokenizer;
    this.bytewise = tokenizer.kind.endsWith("-bytes");
    this.jamo = tokenizer.made.normalizer.whole !== null;
    this.restart();
  }

  restart() {
    this.utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
    this.run = []; // byte fallback: the bytes at the end
    this.open = ""; // jamo: what the next token may join
    this.begun = false;
    this.first = this.tokenizer.made.prefix;
  }

  push(id) {
    return this.inner(this.settled(this.text(id)));
  }

  finish() {
    const text = this.open + (this.bytewise ? this.utf8.decode() : this.flush());
    const last = this.inner(this.jamo ? join(text) : text);
    this.restart();
    return last;
  }

  /** Without what was put before the text and before spaces. */
  inner(text) {
    if (!text) return text;
    if (this.first && text.startsWith(" ")) text = text.slice(1);
    this.first = false;
    return text;
  }

  text(id) {
    const { kind, nBytes } = this.tokenizer;
    if (this.bytewise) return this.utf8.decode(Uint8Array.from(this.tokenizer.bytes(id)), { stream: true });
    const token = this.tokenizer.token(id);
    if (kind === "wordpiece") {
      const text = !this.begun ? token : token.startsWith(MARK) ? token.slice(MARK.length) : ` ${token}`;
      this.begun = true;
      return text;
    }
    if (id < nBytes) {
      this.run.push(id);
      return "";
    }
    return this.flush() + token;
  }

  /** A run of byte pieces; one bad byte makes every byte of it U+FFFD. */
  flush() {
    if (!this.run.length) return "";
    const run = this.run.splice(0);
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(run));
    } catch {
      return "\ufffd".repeat(run.length);
    }
  }

  settled(text) {
    if (!this.jamo || !text) return text;
    const joined = join(this.open + text);
    this.open = mayGrow(joined.at(-1)) ? joined.at(-1) : "";
    return joined.slice(0, joined.length - this.open.length);
  }
}

export { Tokenizer, isSyllable, join, split };
