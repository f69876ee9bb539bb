/**
 * Product search (docs/api/catalogue.md#list-products, docs/api/catalogue.md#product-search), best match first.
 * Tolerates typing errors, prefixes, missing accents, signs within names and scripts without spaces.
 */
import MiniSearch, { type SearchOptions, type SearchResult } from 'minisearch';
import { inSlices } from '../../lib/async/slices.js';
import type { Product } from '../../domain/catalogue.js';
import { nextTurn } from '../../lib/world.js';
import type { Catalogue } from '../../projections/catalogue/wholeCatalogue.js';

/** Longest text to search for, in characters. */
export const MAX_QUERY = 200;
/** The most words of a query. Further words cost time without a better result; they are ignored. */
const MAX_WORDS = 8;
/** Length to which longer words are cut, in index and query. */
const MAX_LETTERS = 32;
/**
 * Shortest word that may be a prefix of a joined word. Shorter words would match too many: they must match a whole one.
 */
const MIN_JOINED = 5;

/**
 * Search in a state of the catalogue. The index is made in slices at the state's first search, and lasts as long as the
 * state.
 */
export interface ProductSearch {
  /**
   * Finds products by name, description and brand's name, best match first; a text without a letter or digit matches
   * nothing. Exactness is judged among the requested products: no other product ever hides one of them.
   */
  find(catalogue: Catalogue, text: string, accepts: (product: Product) => boolean): Promise<readonly Product[]>;
}

export function productSearch(): ProductSearch {
  const indexes = new WeakMap<Catalogue, Promise<Index>>();
  return {
    async find(catalogue, text, accepts) {
      let index = indexes.get(catalogue);
      if (index === undefined) {
        index = buildIndex(catalogue);
        indexes.set(catalogue, index);
      }
      return findIn(await index, wordsOf(text), accepts);
    },
  };
}

interface Entry {
  /** Index of the product in `products`. */
  readonly id: number;
  readonly name: string;
  readonly description: string;
  readonly brand: string;
}

interface Index {
  readonly products: readonly Product[];
  readonly words: MiniSearch<Entry>;
  /** Index of names with neighbouring words joined; made on demand. */
  joined(): Promise<MiniSearch<Entry>>;
}

async function buildIndex(catalogue: Catalogue): Promise<Index> {
  const products = [...catalogue.products.values()];
  const made = async (fields: (keyof Entry)[], tokenize: (text: string) => string[]): Promise<MiniSearch<Entry>> => {
    const index = new MiniSearch<Entry>({
      fields,
      tokenize,
      processTerm: (word) => word,
      searchOptions: { tokenize: (word) => [word] },
    });
    await inSlices(products, ({ name, description, brand_id }, id) => {
      index.add({ id, name, description, brand: catalogue.brands.get(brand_id)?.name ?? '' });
    });
    return index;
  };
  const words = await made(['name', 'description', 'brand'], indexedWords);
  let joined: Promise<MiniSearch<Entry>> | undefined;
  return { products, words, joined: async () => (joined ??= made(['name'], joinedWords)) };
}

/** Letters that Unicode does not decompose into base and accent. */
const LIGATURES: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ı: 'i',
};

/** Scripts without spaces between words: indexed as pairs of letters. */
const UNSPACED =
  '\\p{scx=Han}\\p{scx=Hira}\\p{scx=Kana}\\p{scx=Hang}\\p{scx=Thai}\\p{scx=Laoo}\\p{scx=Khmr}\\p{scx=Mymr}\\p{scx=Tibt}';
const IS_UNSPACED = new RegExp(`^[${UNSPACED}]`, 'u');
const OF_ONE_KIND = new RegExp(`[${UNSPACED}]+|[^${UNSPACED}]+`, 'gu');

/** The text in lower case, without accents and apostrophes. Korean syllables stay whole. */
function folded(text: string): string {
  if (isAscii(text)) return text.replace(/['`]/g, '').toLowerCase();
  return text
    .replace(/['’‘ʼ`´′＇]/g, '')
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[ßæœøłđðþı]/g, (letter) => LIGATURES[letter] as string)
    .normalize('NFC');
}

const cut = (word: string): string => word.slice(0, MAX_LETTERS);

/** Splits a row into overlapping pairs of letters: `星巴克` into `星巴` and `巴克`. A single letter is a word. */
function pairsOf(row: string): string[] {
  const letters = [...row];
  return letters.length < 2 ? [row] : letters.slice(1).map((letter, at) => `${letters[at]}${letter}`);
}

const wordsOfRow = (row: string): readonly string[] => (IS_UNSPACED.test(row) ? pairsOf(row) : [cut(row)]);

/** Rows of letters and digits, split also where scripts with and without spaces meet. */
function rowsOf(part: string): string[] {
  const rows = part.match(/[\p{L}\p{N}]+/gu) ?? [];
  return isAscii(part) ? rows : rows.flatMap((row) => row.match(OF_ONE_KIND) ?? []);
}

const isAscii = (text: string): boolean => /^[\0-\x7f]*$/.test(text);

const partsOf = (text: string): string[][] => folded(text).split(/\s+/u).map(rowsOf);

/**
 * Words under which a text is indexed. A name with signs (`AT&T`, `7-Up`) is also one word. The last letter of a script
 * without spaces starts no pair, so it is a word, too.
 */
function indexedWords(text: string): string[] {
  const words: string[] = [];
  for (const rows of partsOf(text)) {
    for (const row of rows) {
      words.push(...wordsOfRow(row));
      if (IS_UNSPACED.test(row)) words.push(...[...row].slice(-1));
    }
    if (rows.length > 1 && !rows.some((row) => IS_UNSPACED.test(row))) words.push(cut(rows.join('')));
  }
  return words;
}

function joinedWords(text: string): string[] {
  const words = partsOf(text)
    .flat()
    .filter((row) => !IS_UNSPACED.test(row));
  return [2, 3].flatMap((length) => words.slice(length - 1).map((_, at) => cut(words.slice(at, at + length).join(''))));
}

function wordsOf(text: string): string[] {
  return [...new Set(partsOf(text).flat().flatMap(wordsOfRow))].slice(0, MAX_WORDS);
}

interface Match {
  score: number;
  words: number;
}

type Scores = Map<number, Match>;

/**
 * Searches in stages: first all words with few errors; then without spaces or hyphens; then with more errors; finally
 * any of the words.
 */
async function findIn(
  { products, words, joined }: Index,
  query: readonly string[],
  accepts: (product: Product) => boolean,
): Promise<readonly Product[]> {
  let matches: [number, Match][] = [];
  const close = new Map<string, SearchResult[]>();
  const asTyped = (word: string): SearchResult[] => {
    const results = words.search(word, CLOSE);
    close.set(word, results);
    return results;
  };
  const stages = [
    async () => asTyped,
    async () => withJoined(close, await joined()),
    async () => (word: string) => words.search(word, LOOSE),
  ];
  for (const stage of stages) {
    const scores = await scoresOf(query, await stage());
    matches = [...scores].filter(([id]) => accepts(products[id] as Product));
    const all = matches.filter(([, match]) => match.words === query.length);
    if (all.length > 0) return inOrder(all, products);
  }
  return inOrder(matches, products);
}

/** Weights of a match: a prefix counts more than a word with an error. */
const WEIGHTS = {
  boost: { name: 3, description: 1, brand: 0.5 },
  weights: { prefix: 0.6, fuzzy: 0.3 },
} satisfies SearchOptions;
/** Search that allows one error in words from 4 letters on, two from 8. */
const CLOSE = {
  ...WEIGHTS,
  prefix: true,
  fuzzy: (word: string) => (word.length >= 8 ? 2 : word.length >= 4 ? 1 : false),
} satisfies SearchOptions;
const WHOLE = { ...WEIGHTS, prefix: false, fuzzy: false } satisfies SearchOptions;
/** Search that allows two errors in words from 4 letters on, such as two swapped letters. */
const LOOSE = {
  ...WEIGHTS,
  prefix: true,
  fuzzy: (word: string) => (word.length >= 4 ? 2 : false),
} satisfies SearchOptions;

/** Search that adds matches of joined words to the close matches, each product once. */
function withJoined(
  close: ReadonlyMap<string, readonly SearchResult[]>,
  joined: MiniSearch<Entry>,
): (word: string) => readonly SearchResult[] {
  return (word) => {
    const asTyped = close.get(word) ?? [];
    const written = joined.search(word, word.length < MIN_JOINED ? WHOLE : CLOSE);
    const known = new Set(asTyped.map(({ id }) => id as number));
    return [...asTyped, ...written.filter(({ id }) => !known.has(id as number))];
  };
}

/** Pauses after each word, so that long searches never block other requests. */
async function scoresOf(query: readonly string[], found: (word: string) => readonly SearchResult[]): Promise<Scores> {
  const scores: Scores = new Map();
  for (const word of query) {
    for (const { id, score } of found(word)) {
      const match = scores.get(id as number);
      if (match === undefined) scores.set(id as number, { score, words: 1 });
      else {
        match.score += score;
        match.words += 1;
      }
    }
    await nextTurn();
  }
  return scores;
}

function inOrder(matches: [number, Match][], products: readonly Product[]): readonly Product[] {
  return matches.sort(([, a], [, b]) => b.words - a.words || b.score - a.score).map(([id]) => products[id] as Product);
}
