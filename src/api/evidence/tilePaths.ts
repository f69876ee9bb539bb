/** Paths of tiles (c2sp.org/tlog-tiles): the index has a step for three digits, a partial tile a step for its width. */

/** The steps of a path, enough for 256 billion events: three for the index, and one for the width of a partial tile. */
const STEPS = ['n1', 'n2', 'n3', 'n4'] as const;
const WORDS =
  'A step of the path: three digits, with an `x` before them in all steps but the last; `067.p/8` is a part of 8.';

interface TilePath {
  readonly path: string;
  /** Suffix of the operation's name: `''`, `2`, `3` or `4`. */
  readonly suffix: string;
  readonly params: Readonly<Record<string, string>>;
}

/** @param base path before the steps, such as `/tile/:level` */
export function tilePaths(base: string): readonly TilePath[] {
  return STEPS.map((_, last) => {
    const names = STEPS.slice(0, last + 1);
    return {
      path: [base, ...names.map((name) => `:${name}`)].join('/'),
      suffix: last === 0 ? '' : String(last + 1),
      params: Object.fromEntries(names.map((name) => [name, WORDS])),
    };
  });
}

/** Path of the tile that a request names, such as `tile/0/x001/234`. */
export function tilePathIn(level: string, params: Readonly<Record<string, string>>): string {
  return ['tile', level, ...STEPS.flatMap((name) => params[name] ?? [])].join('/');
}

/** Headers of an answer whose bytes never change. */
export const IMMUTABLE = {
  'Content-Type': 'application/octet-stream',
  'Cache-Control': 'public, max-age=31536000, immutable',
} as const;
