/** Lists by numbered pages (docs/api/conventions.md#pages, docs/api/conventions.md#pages). */
import type { Embedded } from '../../entities/embedded.js';
import { MAX_WHOLE_NUMBER } from '../pipeline/query.js';
import type { Schema } from '../pipeline/route.js';
import { countSchema, integerSchema, listSchema, record, textSchema } from '../pipeline/schemas.js';

const PER_PAGE = 20;
const MAX_PER_PAGE = 100;

export const pageParameters = {
  page: integerSchema('The page, counted from 1. Past the end it is empty.', {
    minimum: 1,
    maximum: MAX_WHOLE_NUMBER,
    default: 1,
  }),
  per_page: integerSchema('How many entries a page holds.', { minimum: 1, maximum: MAX_PER_PAGE, default: PER_PAGE }),
} as const;

interface PageRequest {
  readonly page: number;
  readonly perPage: number;
}

export function pageRequest(query: Readonly<Record<string, unknown>>): PageRequest {
  return {
    page: (query['page'] as number | undefined) ?? 1,
    perPage: (query['per_page'] as number | undefined) ?? PER_PAGE,
  };
}

export function pageOf<T>(all: readonly T[], { page, perPage }: PageRequest): T[] {
  return all.slice((page - 1) * perPage, page * perPage);
}

export interface PageContent extends PageRequest {
  /** Address of the service, which may have a path and a trailing slash. */
  readonly publicUrl: string;
  readonly path: string;
  /** Query of the request, without `?`. Parameters other than `page` are retained in the pages' addresses. */
  readonly rawQuery: string;
  /** Number of entries on all pages. */
  readonly total: number;
  readonly data: readonly object[];
  /** Number of entries of the page, which `data` lacks some of where they are out of service; default: those of `data`. */
  readonly count?: number;
  /** Embedded entities; `undefined`: none were requested, answered as `[]`. */
  readonly embedded: Embedded | undefined;
}

export interface Page {
  readonly current_page: number;
  readonly data: readonly object[];
  readonly from: number;
  readonly to: number;
  readonly last_page: number;
  readonly next_page_url: string | null;
  readonly prev_page_url: string | null;
  readonly path: string;
  readonly per_page: number;
  readonly total: number;
  readonly embedded: Embedded | readonly never[];
}

/** Past the end, `from` and `to` are 0 and the previous page is the last. */
export function paginate(content: PageContent): Page {
  const { page, perPage, total, data, count = data.length } = content;
  const address = content.publicUrl.replace(/\/+$/, '') + content.path;
  const lastPage = Math.max(1, Math.ceil(total / perPage));
  const from = count === 0 ? 0 : (page - 1) * perPage + 1;
  return {
    current_page: page,
    data,
    from,
    to: count === 0 ? 0 : from + count - 1,
    last_page: lastPage,
    next_page_url: page < lastPage ? pageUrl(address, content.rawQuery, page + 1) : null,
    prev_page_url: page > 1 ? pageUrl(address, content.rawQuery, Math.min(page - 1, lastPage)) : null,
    path: address,
    per_page: perPage,
    total,
    embedded: content.embedded ?? [],
  };
}

function pageUrl(address: string, rawQuery: string, page: number): string {
  const parameters = new URLSearchParams(rawQuery);
  parameters.set('page', String(page));
  return `${address}?${parameters.toString()}`;
}

export function pageSchema(entity: Schema, embedded: Schema): Schema {
  const url = { type: ['string', 'null'], format: 'uri' };
  const properties = {
    current_page: integerSchema('Page number of this page.', { minimum: 1 }),
    data: listSchema(entity, 'The entities on this page.'),
    from: countSchema('Index of the first item on the page, counted from 1; 0 on an empty page.'),
    to: countSchema('Index of the last item on the page; 0 on an empty page.'),
    last_page: integerSchema('The last page.', { minimum: 1 }),
    next_page_url: { ...url, description: 'Address of the next page, null on the last.' },
    prev_page_url: { ...url, description: 'Address of the previous page, null on the first.' },
    path: textSchema('Address of the listing, without a query.', { format: 'uri' }),
    per_page: integerSchema('Page size.', { minimum: 1, maximum: MAX_PER_PAGE }),
    total: countSchema('How many items there are on all pages.'),
    embedded: {
      anyOf: [embedded, { type: 'array', items: {}, maxItems: 0 }],
      description: 'The embedded entities; `[]` when none were requested.',
    },
  };
  return record(properties, Object.keys(properties));
}
