/** Pages of one list that were read one after the other, each with the `next` of the one before. */
import type { Leeway } from './finding.js';
import { type Observation, field, grouped, listField, textField, toldBy } from './history.js';
import type { ListOperation } from './operations.js';

/** A page that was answered with 200. */
export interface ReadPage {
  readonly observation: Observation;
  readonly sent: number;
  readonly answered: number;
  readonly after: string | undefined;
  readonly limit: number | undefined;
  readonly data: readonly unknown[];
  readonly next: string | null;
  readonly hasMore: boolean;
}

export interface Chain<O extends ListOperation = ListOperation> {
  readonly client: string;
  /** That of its first page. */
  readonly operation: O;
  readonly pages: readonly ReadPage[];
  /** Whether it begins at the list's beginning, and its last page has none after it. */
  readonly complete: boolean;
  /** When its first page was requested and its last one answered, ms. */
  readonly sent: number;
  readonly answered: number;
}

/** A chain while its pages are gathered. */
interface OpenChain {
  readonly number: number;
  readonly pages: ReadPage[];
  readonly first: Observation;
}

/** The page that follows one; `undefined` after the last. */
export function nextPage<O extends ListOperation>(operation: O, observation: Observation): O | undefined {
  const answer = toldBy(observation);
  if (answer?.status !== 200 || field(answer.body, 'has_more') !== true) return undefined;
  const after = textField(answer.body, 'next');
  return after === undefined ? undefined : { ...operation, after };
}

/** The chains of one kind of list. Pages that were not answered with 200 end a chain. */
export function chainsOf<O extends ListOperation>(history: readonly Observation[], kind: O['kind']): Chain<O>[] {
  const chains: OpenChain[] = [];
  /** Chains by list and by the page that comes next. */
  const awaiting = new Map<string, OpenChain[]>();
  for (const observation of history) {
    const { operation } = observation;
    const page = operation.kind === kind ? pageOf(observation) : undefined;
    if (page === undefined) continue;
    const { after: _after, position: _position, limit: _limit, ...list } = operation as ListOperation;
    const key = `${observation.client} ${JSON.stringify(list)}`;
    const candidates = page.after === undefined ? [] : (awaiting.get(`${key} ${page.after}`) ?? []);
    const [open] = candidates
      .filter(({ pages }) => (pages.at(-1)?.answered ?? Infinity) <= page.sent)
      .toSorted((one, other) => one.number - other.number);
    const chain = open ?? { number: chains.length, pages: [], first: observation };
    if (open === undefined) chains.push(chain);
    else candidates.splice(candidates.indexOf(open), 1);
    chain.pages.push(page);
    if (page.next === null || !(page.hasMore || kind === 'listEvents')) continue;
    const next = `${key} ${page.next}`;
    awaiting.set(next, [...(awaiting.get(next) ?? []), chain]);
  }
  return chains.map(({ pages, first }) => {
    const last = pages.at(-1);
    const { client, operation, sent } = first;
    const answered = last?.answered ?? sent;
    const complete = pages[0]?.after === undefined && last?.hasMore === false;
    return { client, operation: operation as O, pages, complete, sent, answered };
  });
}

function pageOf(observation: Observation): ReadPage | undefined {
  const answer = toldBy(observation);
  const { operation, sent, answered } = observation;
  if (answer?.status !== 200 || answered === undefined) return undefined;
  const { after, limit } = operation as ListOperation;
  return {
    observation,
    sent,
    answered,
    after,
    limit,
    data: listField(answer.body, 'data'),
    next: textField(answer.body, 'next') ?? null,
    hasMore: field(answer.body, 'has_more') === true,
  };
}

/** All entries of a chain. */
export function entriesOf({ pages }: Chain): unknown[] {
  return pages.flatMap(({ data }) => data);
}

/** A list that was read whole once nothing was written any more, with its entries by the id of what they concern. */
export interface WholeList<O extends ListOperation = ListOperation> {
  readonly chain: Chain<O>;
  readonly entries: ReadonlyMap<string, readonly unknown[]>;
}

export function wholeLists<O extends ListOperation>(
  history: readonly Observation[],
  kind: O['kind'],
  { quietFrom = Infinity }: Leeway,
  idIn: (entry: unknown) => string | undefined,
): WholeList<O>[] {
  return chainsOf<O>(history, kind)
    .filter((chain) => chain.complete && chain.sent >= quietFrom)
    .map((chain) => ({ chain, entries: grouped(entriesOf(chain), idIn) }));
}
