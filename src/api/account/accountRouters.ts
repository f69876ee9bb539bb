import type { RouterMaker, SubjectRouter } from '../pipeline/router.js';
import { accountStream, PERMISSIONS, type Role, type User } from '../../domain/account.js';
import { isStaffClient } from '../pipeline/principal.js';
import { userOf } from '../pipeline/commandContext.js';
import type { Route } from '../pipeline/route.js';
import {
  choiceSchema,
  dataAnswer,
  entity,
  flagSchema,
  listSchema,
  orNull,
  querySchema,
  textSchema,
} from '../pipeline/schemas.js';
import { ID_PATTERN } from '../../import/schemas.js';
import type { Condition } from '../../ports/readStore.js';
import { methodsOf, namedIn } from '../../projections/byUser.js';
import { documentsListed } from '../../entities/documentsListed.js';
import type { AccountDocument, PaymentMethodDocument } from '../../projections/accounts.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import { faultOf } from '../pipeline/errors.js';
import {
  cursorBody,
  type CursorPage,
  cursorParameters,
  type CursorRequest,
  cursorRequest,
  cursorAnswer,
} from '../representation/cursors.js';

interface AccountDeps {
  readonly accounts: ReadModel<AccountDocument>;
  readonly byUser: ReadModel<object>;
}

export function accountRouters(routerOf: RouterMaker, deps: AccountDeps): SubjectRouter[] {
  return [routerOf('/api/v2/me', meRoutes(deps)), routerOf('/api/v2/payment-methods', paymentMethodRoutes(deps))];
}

const TEXT = textSchema();

const meSchema = entity('Me', {
  id: textSchema('The user’s id.'),
  username: TEXT,
  name: textSchema('May be empty.'),
  phone_number: textSchema('E.164; empty without one.'),
  locale: orNull(textSchema('A language tag such as `en-GB`.')),
  merchant_id: orNull(textSchema('The merchant that the user works for; null for a customer.')),
  permissions: listSchema(choiceSchema(PERMISSIONS), 'What the user may do at the merchant’s locations.'),
  roles: listSchema(choiceSchema(['support', 'auditor']), 'None through a client that serves no staff.'),
});

const meExample = {
  id: 'user-noah',
  username: 'noah@example.com',
  name: 'Noah',
  phone_number: '+447700900123',
  locale: 'en-GB',
  merchant_id: null,
  permissions: [],
  roles: [],
};

function meEntity(
  { id, username, name, phone_number, locale, merchant_id, permissions }: User,
  roles: readonly Role[],
): object {
  return { id, username, name, phone_number: phone_number ?? '', locale, merchant_id, permissions, roles };
}

/** Route that shows the caller's account (docs/api/tokens.md#show-the-caller). */
function meRoutes({ accounts }: AccountDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v2/me',
      operation: 'getMe',
      summary: 'The user of the token',
      description: "For a user's token: a client's own has no user.",
      tag: 'Account',
      caller: 'user',
      answers: [dataAnswer('The user.', meSchema, meExample)],
      async handle(call) {
        const own = userOf(call);
        // The call's copy of the user may be half a second old, so the account is read again. Where the read model is
        // from before the login, the copy is from the log.
        const shown = await accounts.get(accountStream('user', own.id));
        const user = shown?.entry === 'user' && shown.active && shown.credential >= own.credential ? shown : own;
        return { body: { data: meEntity(user, isStaffClient(call.principal) ? user.roles : []) } };
      },
    },
  ];
}

const paymentMethodSchema = entity('PaymentMethod', {
  reference: textSchema('What `payment.reference` of a purchase takes.'),
  kind: choiceSchema(['card', 'wallet']),
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

/** Route that lists the caller's payment methods (docs/api/purchases.md#list-payment-methods). */
function paymentMethodRoutes(deps: AccountDeps): Route[] {
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
        return { body: cursorBody(await usableBy(deps, userOf(call).id, cursorRequest(call.query))) };
      },
    },
  ];
}
