/** Route that shows the caller's account (docs/api/tokens.md#show-the-caller). */
import { accountStream, PERMISSIONS, type Role, type User } from '../../domain/account.js';
import { isStaffClient } from '../pipeline/principal.js';
import { userOf } from '../pipeline/commandContext.js';
import type { Route } from '../pipeline/route.js';
import { dataSchema, entity } from '../representation/schemas.js';
import type { AccountDeps } from './deps.js';

const TEXT = { type: 'string' };
const NULLABLE = { type: ['string', 'null'] };

const meSchema = entity('Me', {
  id: { ...TEXT, description: 'The user’s id.' },
  username: TEXT,
  name: { ...TEXT, description: 'May be empty.' },
  phone_number: { ...TEXT, description: 'E.164; empty without one.' },
  locale: { ...NULLABLE, description: 'A language tag such as `en-GB`.' },
  merchant_id: { ...NULLABLE, description: 'The merchant that the user works for; null for a customer.' },
  permissions: {
    type: 'array',
    items: { type: 'string', enum: PERMISSIONS },
    description: 'What the user may do at the merchant’s locations.',
  },
  roles: {
    type: 'array',
    items: { type: 'string', enum: ['support', 'auditor'] },
    description: 'None through a client that serves no staff.',
  },
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
      answers: [{ status: 200, description: 'The user.', schema: dataSchema(meSchema), example: { data: meExample } }],
      errors: [],
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
