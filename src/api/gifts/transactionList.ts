/** Route that lists the caller's purchases (docs/api/purchases.md#list-transactions). */
import { boughtBy, orderedBy } from '../../projections/byUser.js';
import type { RefundedMoney } from '../../domain/purchase/status.js';
import type { TransactionDocument } from '../../projections/transactions.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { inSlices } from '../../lib/async/slices.js';
import { documentsListed } from '../../entities/documentsListed.js';
import type { Route } from '../pipeline/route.js';
import {
  cursorBody,
  type CursorPage,
  cursorParameters,
  type CursorRequest,
  cursorRequest,
  cursorAnswer,
  firstOf,
  timedCursor,
} from '../representation/cursors.js';
import { userOf } from '../pipeline/commandContext.js';
import { type GiftRouteDeps } from './deps.js';
import { transactionEntity } from '../../entities/gifts.js';
import { transactionExample, transactionSchema } from './schemas.js';
import { REFERENCE_ID } from './purchaseBody.js';
import { querySchema } from '../pipeline/schemas.js';

/**
 * The most gifts on one page, which shows their ids: as many as the largest purchase has. A page has one purchase at
 * least.
 */
const MAX_GIFTS = 10_000;

interface Bought {
  readonly id: string;
  readonly transaction: TransactionDocument;
  readonly refundedMoney: RefundedMoney | undefined;
}

type ListDeps = Pick<GiftRouteDeps, 'byUser' | 'transactions' | 'reversals'>;

/** One page of a list of purchases, the latest first. @param prefix of the list's ids @throws UnavailableError */
async function boughtOn(deps: ListDeps, prefix: string, { limit, after }: CursorRequest): Promise<CursorPage<Bought>> {
  const found = await deps.byUser.find({
    where: { id: after === undefined ? { prefix } : { gte: prefix, lt: prefix + after.replace('.', '/') } },
    sort: [['id', -1]],
    limit: limit + 1,
  });
  const places = found.map(({ id }) => id.slice(prefix.length).split('/') as [time: string, id: string]);
  const ids = places.map(([, id]) => id);
  const transactions = await documentsListed(deps.transactions, ids);
  if (transactions.includes(undefined)) throw new UnavailableError('the read model does not know all purchases yet');
  const { data, next } = firstOf(places, Math.min(limit, shownAtOnce(transactions)), (cursor) => cursor.join('.'));
  const refunded = await documentsListed(deps.reversals, ids.slice(0, data.length));
  const bought = data.flatMap(([, id], index): Bought[] => {
    const [transaction, refundedMoney] = [transactions[index] ?? null, refunded[index]];
    return transaction === null || refundedMoney === null ? [] : [{ id, transaction, refundedMoney }];
  });
  return { data: bought, next };
}

/** How many of these purchases one page can show. */
function shownAtOnce(transactions: readonly (TransactionDocument | null | undefined)[]): number {
  let gifts = 0;
  const over = transactions.findIndex((transaction) => (gifts += transaction?.count ?? 0) > MAX_GIFTS);
  return over < 0 ? transactions.length : Math.max(1, over);
}

export function transactionListRoutes(deps: GiftRouteDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v2/transactions',
      operation: 'listTransactions',
      summary: 'The caller’s transactions',
      description:
        'What the user bought, the latest first. Large purchases make a page shorter than `limit`; `has_more` says whether there are more.',
      tag: 'Transactions',
      caller: 'user',
      reads: ['byUser', 'reversals'],
      query: querySchema({
        reference_id: { ...REFERENCE_ID, description: 'Only purchases with this `reference_id`.' },
        ...cursorParameters(timedCursor(32)),
      }),
      answers: [cursorAnswer(transactionSchema, transactionExample)],
      async handle(call) {
        const { id } = userOf(call);
        const referenceId = call.query['reference_id'] as string | undefined;
        const list = referenceId === undefined ? boughtBy(id) : orderedBy(id, referenceId);
        const { data: bought, next } = await boughtOn(deps, list, cursorRequest(call.query));
        const data: object[] = [];
        await inSlices(bought, ({ id, transaction, refundedMoney }) => {
          data.push(transactionEntity(id, transaction, refundedMoney));
        });
        return { body: cursorBody({ data, next }) };
      },
    },
  ];
}
