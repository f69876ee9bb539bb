/** Route that lists the caller's payment methods (docs/api/purchases.md#list-payment-methods). */
import { accountStream } from '../../domain/account.js';
import { ID_PATTERN } from '../../import/schemas.js';
import type { Condition } from '../../ports/readStore.js';
import { methodsOf, namedIn } from '../../projections/byUser.js';
import { documentsListed } from '../../entities/documentsListed.js';
import type { PaymentMethodDocument } from '../../projections/accounts.js';
import { userOf } from '../pipeline/commandContext.js';
import { faultOf } from '../pipeline/errors.js';
import type { Route } from '../pipeline/route.js';
import {
  cursorBody,
  type CursorPage,
  cursorParameters,
  type CursorRequest,
  cursorRequest,
  cursorAnswer,
} from '../representation/cursors.js';
import { entity, flagSchema, querySchema, textSchema } from '../pipeline/schemas.js';
import type { AccountDeps } from './deps.js';

const paymentMethodSchema = entity('PaymentMethod', {
  reference: textSchema('What `payment.reference` of a purchase takes.'),
  kind: { type: 'string', enum: ['card', 'wallet'] },
  prepaid: flagSchema('Whether it pays only what it was topped up with.'),
});

type Usable = Pick<PaymentMethodDocument, 'reference' | 'kind' | 'prepaid'>;

/**
 * Payment methods that the user may use, in the order of their references. `after` may also name a method that the user
 * may no longer use.
 * @throws HttpError `schema` where `after` was never one of the user's methods
 */
async function usableBy(
  { accounts, byUser }: AccountDeps,
  userId: string,
  { limit, after }: CursorRequest,
): Promise<CursorPage<Usable>> {
  const prefix = methodsOf(userId);
  if (after !== undefined && (await byUser.get(prefix + after)) === undefined) throw faultOf('after', 'is not valid');
  const data: Usable[] = [];
  // `0` is the character after `/`, so `end` is behind all ids with the prefix.
  const end = prefix.replace(/\/$/, '0');
  let range: Condition = after === undefined ? { prefix } : { gt: prefix + after, lt: end };
  for (;;) {
    const found = await byUser.find({ where: { id: range }, sort: [['id', 1]], limit: limit + 1 });
    const methods = await documentsListed(
      accounts,
      found.map(({ id }) => accountStream('paymentMethod', namedIn(id))),
    );
    for (const method of methods) {
      if (method?.entry !== 'paymentMethod' || !method.active || !method.users.includes(userId)) continue;
      if (data.length === limit) return { data, next: data.at(-1)?.reference ?? null };
      const { reference, kind, prepaid } = method;
      data.push({ reference, kind, prepaid });
    }
    const last = found.at(-1);
    if (last === undefined || found.length <= limit) return { data, next: null };
    range = { gt: last.id, lt: end };
  }
}

export function paymentMethodRoutes(deps: AccountDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v2/payment-methods',
      operation: 'listPaymentMethods',
      summary: 'The caller’s payment methods',
      description: 'Those that the user may pay with at present, in the order of their references.',
      tag: 'Account',
      caller: 'user',
      reads: ['byUser'],
      query: querySchema(cursorParameters(ID_PATTERN)),
      answers: [cursorAnswer(paymentMethodSchema, { reference: 'pm_card_visa', kind: 'card', prepaid: false })],
      async handle(call) {
        return { status: 200, body: cursorBody(await usableBy(deps, userOf(call).id, cursorRequest(call.query))) };
      },
    },
  ];
}
