/** ETag and 304 of the catalogue's answers (docs/api/conventions.md#revalidation). */
import { createHash } from 'node:crypto';
import { inSlices } from '../../lib/async/slices.js';
import type { Brand } from '../../domain/catalogue.js';
import type { CatalogueView } from '../../projections/catalogue/view.js';
import type { Catalogue } from '../../projections/catalogue/wholeCatalogue.js';
import type { Answer, EarlyCall, Handler, Route } from '../pipeline/route.js';
import { callerId } from './callerId.js';

export interface Representation {
  readonly catalogue: CatalogueView;
  readonly publicUrl: string;
  /** Version of the service: another release may show the same catalogue differently. */
  readonly version: string;
}

const CACHE_CONTROL = 'private, no-cache';
const DESCRIBED = {
  ETag: 'Names what was answered, for `If-None-Match`. Absent where the catalogue changed meanwhile.',
  'Cache-Control':
    "`private, no-cache`: only the caller's own cache may keep the answer, and must ask before it uses it.",
};

/**
 * Makes the routes answer 304 to a caller that has the present answer, without building it again. Large answers are
 * compressed, since the catalogue holds no secrets.
 */
export function revalidated(routes: readonly Route[], deps: Representation): Route[] {
  const tagOf = tagger(deps);
  /** @param found the state in which an entity was found, which its handler shows */
  const conditional =
    (handler: Handler, found?: Catalogue): Handler =>
    async (call) => {
      const state = found ?? deps.catalogue.current();
      const tag = await tagOf(state, call);
      const condition = call.header('if-none-match');
      if (condition !== undefined && names(condition, tag)) return notModified(tag);
      const answer = await handler(call);
      // A replaced state never comes back: one that is still the present one was so throughout.
      if (deps.catalogue.current() !== state) return withHeaders(answer, {});
      return condition?.trim() === '*' ? notModified(tag) : withHeaders(answer, { ETag: tag });
    };
  return routes.map((route) => {
    const answers = [
      ...route.answers.map((answer) => ({ ...answer, headers: { ...answer.headers, ...DESCRIBED } })),
      { status: 304, description: 'The caller has the present answer: `If-None-Match` names it.', headers: DESCRIBED },
    ];
    if (route.open === undefined) return { ...route, answers, compressed: true, handle: conditional(route.handle) };
    const { open } = route;
    return {
      ...route,
      answers,
      compressed: true,
      async open(call) {
        const found = deps.catalogue.current();
        return conditional(await open(call), found);
      },
    };
  });
}

/** Makes weak ETags: a compressed answer has the same tag as an uncompressed one. */
function tagger({ publicUrl, version }: Representation): (state: Catalogue, call: EarlyCall) => Promise<string> {
  const restricted = remembered(async (brands: ReadonlyMap<string, Brand>) =>
    [...brands.values()].filter(({ visible_to }) => visible_to !== null),
  );
  return async (state, { principal, path, rawQuery }) => {
    const userId = callerId(principal);
    const seen = (await restricted(state.brands)).filter((brand) => state.visible(brand, userId)).map(({ id }) => id);
    const shown = await Promise.all([state.products, state.brands, state.stores, state.categories].map(digestOf));
    const parts = JSON.stringify([version, publicUrl, shown, seen, path, rawQuery]);
    return `W/"${createHash('sha256').update(parts).digest('base64url').slice(0, 22)}"`;
  };
}

/**
 * Digest of the entries' content, so that all processes make the same tags. A kind that an import does not change keeps
 * its digest.
 */
const digestOf = remembered(async (entries: ReadonlyMap<string, object>) => {
  const hash = createHash('sha256');
  await inSlices(entries.values(), (entry) => void hash.update(`${JSON.stringify(entry)}\n`));
  return hash.digest('base64url');
});

/** Makes the value of each key once, also for concurrent callers. */
function remembered<K extends object, V>(make: (key: K) => Promise<V>): (key: K) => Promise<V> {
  const made = new WeakMap<K, Promise<V>>();
  return (key) => {
    let value = made.get(key);
    if (value === undefined) made.set(key, (value = make(key)));
    return value;
  };
}

/** Whether the condition names the tag, by weak comparison (RFC 9110 13.1.2). */
function names(condition: string, tag: string): boolean {
  const opaque = (one: string): string => one.replace(/^W\//, '');
  return (condition.match(/(?:W\/)?"[^"]*"/g) ?? []).some((one) => opaque(one) === opaque(tag));
}

const notModified = (tag: string): Answer => withHeaders({ status: 304, body: '' }, { ETag: tag });

const withHeaders = (answer: Answer, headers: Readonly<Record<string, string>>): Answer => ({
  ...answer,
  headers: { ...answer.headers, ...headers, 'Cache-Control': CACHE_CONTROL },
});
