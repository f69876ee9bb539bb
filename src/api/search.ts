/** Product search (spec 4.5, decisions 5): typing errors, word prefixes and accents are forgiven, best match first. */
import { setImmediate } from 'node:timers/promises';
import MiniSearch, { type SearchOptions } from 'minisearch';
import { inSlices } from '../commands/slices.js';
import type { Product } from '../domain/catalogue.js';
import type { Catalogue } from '../projections/wholeCatalogue.js';

/** The longest text that may be searched for, in characters. */
export const MAX_QUERY = 200;
/** More words than these make a search dearer, not better: the rest are ignored. */
const MAX_WORDS = 8;
/** Longer words are cut, in the index as in what is searched for. */
const MAX_LETTERS = 32;

/** Searches states of the catalogue. The index of a state is made at its first search, in slices, and kept as long as the state. */
export interface ProductSearch {
  /**
   * Of the products that are wanted, those whose name, description or brand's name match the text, best match first; a text without a letter or digit matches none.
   * How exact a match must be is decided among these: what a caller may not see, or has filtered out, hides nothing that he may.
   */
  find(catalogue: Catalogue, text: string, wanted: (product: Product) => boolean): Promise<readonly Product[]>;
}

/** A search with no index made yet. */
export function productSearch(): ProductSearch {
  const indexes = new WeakMap<Catalogue, Promise<Index>>();
  return {
    async find(catalogue, text, wanted) {
      let index = indexes.get(catalogue);
      if (index === undefined) {
        index = buildIndex(catalogue);
        indexes.set(catalogue, index);
      }
      return findIn(await index, wordsOf(text), wanted);
    },
  };
}

interface Entry {
  /** The product's place in `products`. */
  readonly id: number;
  readonly name: string;
  readonly description: string;
  readonly brand: string;
}

interface Index {
  readonly products: readonly Product[];
  readonly words: MiniSearch<Entry>;
}

async function buildIndex(catalogue: Catalogue): Promise<Index> {
  const words = new MiniSearch<Entry>({ fields: ['name', 'description', 'brand'], tokenize: lettersAndDigits, processTerm: (word) => word });
  const products = [...catalogue.products.values()];
  await inSlices(products, ({ name, description, brand_id }, id) => {
    words.add({ id, name, description, brand: catalogue.brands.get(brand_id)?.name ?? '' });
  });
  return { products, words };
}

/** Letters that Unicode doesn't take apart into a base and an accent. */
const LIGATURES: Readonly<Record<string, string>> = { ß: 'ss', æ: 'ae', œ: 'oe', ø: 'o', ł: 'l', đ: 'd', ð: 'd', þ: 'th', ı: 'i' };

/** The words of a text as they are indexed: lower case, without accents and apostrophes, cut to 32 letters. */
function lettersAndDigits(text: string): string[] {
  const folded = text
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[\p{M}'’]/gu, '')
    .replace(/[ßæœøłđðþı]/g, (letter) => LIGATURES[letter] as string);
  return (folded.match(/[\p{L}\p{N}]+/gu) ?? []).map((word) => word.slice(0, MAX_LETTERS));
}

function wordsOf(text: string): string[] {
  return [...new Set(lettersAndDigits(text))].slice(0, MAX_WORDS);
}

/** How well a product matches: the score, and how many words matched. */
interface Match {
  score: number;
  words: number;
}

/** How well products match, by place in the list. */
type Scores = Map<number, Match>;

/** First all words as typed but for few errors; where nothing has them, with more errors; and where nothing has all even so, any of them. */
async function findIn({ products, words }: Index, query: readonly string[], wanted: (product: Product) => boolean): Promise<readonly Product[]> {
  let matches: [number, Match][] = [];
  for (const options of [CLOSE, LOOSE]) {
    const scores = await scoresOf(words, query, options);
    matches = [...scores].filter(([id]) => wanted(products[id] as Product));
    const all = matches.filter(([, match]) => match.words === query.length);
    if (all.length > 0) return inOrder(all, products);
  }
  return inOrder(matches, products);
}

/** An unfinished word says more than a mistyped one. */
const WEIGHTS = { boost: { name: 3, description: 1, brand: 0.5 }, weights: { prefix: 0.6, fuzzy: 0.3 } } satisfies SearchOptions;
/** One error in words from 4 letters on, two from 8. */
const CLOSE = { ...WEIGHTS, prefix: true, fuzzy: (word: string) => (word.length >= 8 ? 2 : word.length >= 4 ? 1 : false) } satisfies SearchOptions;
/** Two errors, which is also two letters that changed places. */
const LOOSE = { ...WEIGHTS, prefix: true, fuzzy: (word: string) => (word.length >= 4 ? 2 : false) } satisfies SearchOptions;

/** Word by word, with a pause after each: a search of many words never holds up other requests. */
async function scoresOf(words: MiniSearch<Entry>, query: readonly string[], options: SearchOptions): Promise<Scores> {
  const scores: Scores = new Map();
  for (const word of query) {
    for (const { id, score } of words.search(word, options)) {
      const match = scores.get(id as number);
      if (match === undefined) scores.set(id as number, { score, words: 1 });
      else {
        match.score += score;
        match.words += 1;
      }
    }
    await setImmediate();
  }
  return scores;
}

function inOrder(matches: [number, Match][], products: readonly Product[]): readonly Product[] {
  return matches.sort(([, a], [, b]) => b.words - a.words || b.score - a.score).map(([id]) => products[id] as Product);
}
