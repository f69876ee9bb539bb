/** Revocation of tokens (RFC 7009; docs/api/tokens.md#revoke-a-token). */
import type { Route, Schema } from '../pipeline/route.js';
import { bodyValidator } from '../pipeline/validation.js';
import { challenged, readBasic } from './clients.js';
import type { Grants } from './grants.js';
import { byBasic, CLIENT_ID, CLIENT_SECRET, credentialsOf, type Fields, withoutEmpty } from './oauth.js';
import { jsonAnswer, textSchema } from '../pipeline/schemas.js';

const BODY: Schema = {
  type: 'object',
  properties: {
    // A token may have any length: tokens of other services are unknown, not malformed.
    token: textSchema('An access or refresh token.'),
    token_type_hint: textSchema('Not needed: a token shows what it is.'),
    client_id: CLIENT_ID,
    client_secret: CLIENT_SECRET,
  },
  required: ['token', 'client_id', 'client_secret'],
};

export function revokeRoutes(grants: Grants): Route[] {
  const check = { body: bodyValidator(BODY), basic: bodyValidator(byBasic(BODY)) };
  return [
    {
      method: 'POST',
      path: '/oauth/revoke',
      operation: 'revokeToken',
      summary: 'Revoke a token',
      tag: 'Tokens',
      description:
        'Ends the whole login of an access or refresh token, within a second for all its tokens (RFC 7009). The client authenticates as for a refresh, and revokes only tokens that it was granted. An unknown or expired token is answered alike.',
      caller: 'none',
      formBody: true,
      noStore: true,
      body: byBasic(BODY),
      bodyCheckedByHandler: true,
      bodyExample: { token: '…', client_id: 'app', client_secret: 'app-secret' },
      answers: [
        jsonAnswer(
          'The token is valid no longer.',
          { type: 'object', additionalProperties: false, properties: {} },
          {},
        ),
      ],
      errors: ['authentication_failed', 'too_many_requests', 'schema'],
      async handle({ body: sent, address, header }) {
        const body = withoutEmpty(sent);
        const authorization = header('authorization');
        return challenged(authorization, async () => {
          const basic = readBasic(authorization);
          check[basic === undefined ? 'body' : 'basic'](body);
          const { token = '' } = body as Fields;
          await grants.revoke(credentialsOf(body as Fields, basic), token, address);
          return { body: {} };
        });
      },
    },
  ];
}
