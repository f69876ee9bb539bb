/** Route that shows the caller's account (docs/api/tokens.md#show-the-caller). */
import { accountStream, PERMISSIONS, type Role, type User } from '../../domain/account.js';
import { isStaffClient } from '../pipeline/principal.js';
import { userOf } from '../pipeline/commandContext.js';
import type { Route } from '../pipeline/route.js';
import { dataAnswer, entity, listSchema, orNull, textSchema } from '../pipeline/schemas.js';
import type { AccountDeps } from './deps.js';

const TEXT = textSchema();

const meSchema = entity('Me', {
  id: textSchema('The user’s id.'),
  username: TEXT,
  name: textSchema('May be empty.'),
  phone_number: textSchema('E.164; empty without one.'),
  locale: orNull(textSchema('A language tag such as `en-GB`.')),
  merchant_id: orNull(textSchema('The merchant that the user works for; null for a customer.')),
  permissions: listSchema({ type: 'string', enum: PERMISSIONS }, 'What the user may do at the merchant’s locations.'),
  roles: listSchema({ type: 'string', enum: ['support', 'auditor'] }, 'None through a client that serves no staff.'),
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

export function meRoutes({ accounts }: AccountDeps): Route[] {
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
        return { status: 200, body: { data: meEntity(user, isStaffClient(call.principal) ? user.roles : []) } };
      },
    },
  ];
}
