/** The token endpoint (docs/api/tokens.md). */
import { isObject } from '../../lib/isObject.js';
import { HttpError } from '../pipeline/errors.js';
import type { Answer, Call, Route, Schema } from '../pipeline/route.js';
import { bodyValidator } from '../pipeline/validation.js';
import { type ClientCredentials, authenticationFailed, challenged, readBasic } from './clients.js';
import type { Grants } from './grants.js';
import type { TokenPair } from './sessions.js';
import { integerSchema, jsonAnswer, record, textSchema } from '../pipeline/schemas.js';

const text = (description: string): Schema => textSchema(description, { maxLength: 1_024 });
/**
 * Schema of a grant. Unknown parameters are ignored: clients send `scope` or `audience` to every server (RFC 6749 3.2).
 */
const grant = (name: string, properties: Readonly<Record<string, Schema>>): Schema => ({
  type: 'object',
  title: name,
  properties: { grant_type: { type: 'string', const: name }, ...properties },
  required: ['grant_type', ...Object.keys(properties)],
});
/** Schema for HTTP Basic, where the client's id and secret need not be in the body. */
export const byBasic = (schema: Schema): Schema => ({
  ...schema,
  required: (schema['required'] as readonly string[]).filter((name) => !name.startsWith('client_')),
});

export const CLIENT_ID = text('The id of the API client, where HTTP Basic does not say it.');
export const CLIENT_SECRET = text('The secret of the API client, where HTTP Basic does not say it.');
const PASSWORD = grant('password', {
  username: text("The account's username, in any case."),
  password: text("The account's password."),
});
const REFRESH = grant('refresh_token', {
  refresh_token: text('The latest refresh token of the login.'),
  client_id: CLIENT_ID,
  client_secret: CLIENT_SECRET,
});
const CLIENT = grant('client_credentials', { client_id: CLIENT_ID, client_secret: CLIENT_SECRET });
/** Schema for all grants. A grant's own schema is checked after the client's token. */
const ANY: Schema = { type: 'object', properties: { grant_type: textSchema() }, required: ['grant_type'] };

const TOKENS: Schema = record(
  {
    token_type: { type: 'string', const: 'Bearer' },
    expires_in: integerSchema('Seconds until the access token expires.'),
    access_token: textSchema('For the header `Authorization: Bearer …`.'),
    refresh_token: textSchema("Good for one refresh. Only with a user's login: a client without a user logs in again."),
  },
  ['token_type', 'expires_in', 'access_token'],
);

export type Fields = Readonly<Record<string, string>>;

export function oauthRoutes(grants: Grants): Route[] {
  const check = {
    any: bodyValidator(ANY),
    password: bodyValidator(PASSWORD),
    refresh: bodyValidator(REFRESH),
    refreshBasic: bodyValidator(byBasic(REFRESH)),
    client: bodyValidator(CLIENT),
    clientBasic: bodyValidator(byBasic(CLIENT)),
  };

  const tokens = async ({
    body: sent,
    address,
    header,
  }: Pick<Call, 'body' | 'address' | 'header'>): Promise<TokenPair> => {
    const body = withoutEmpty(sent);
    check.any(body);
    switch (body['grant_type']) {
      case 'password': {
        const client = await grants.loginClient(header('authorization'));
        check.password(body);
        const { username = '', password = '' } = body as Fields;
        return grants.password(client, username, password, address);
      }
      case 'refresh_token': {
        const basic = readBasic(header('authorization'));
        check[basic === undefined ? 'refresh' : 'refreshBasic'](body);
        const { refresh_token = '' } = body as Fields;
        return grants.refresh(credentialsOf(body as Fields, basic), refresh_token, address);
      }
      case 'client_credentials': {
        const basic = readBasic(header('authorization'));
        check[basic === undefined ? 'client' : 'clientBasic'](body);
        return grants.clientCredentials(credentialsOf(body as Fields, basic), address);
      }
      default:
        throw new HttpError('unsupported_grant_type');
    }
  };

  return [
    {
      method: 'POST',
      path: '/oauth/token',
      operation: 'getAccessToken',
      summary: 'Get an access token',
      tag: 'Tokens',
      description: [
        'Parameters that a grant does not know are ignored, and those without a value count as absent (RFC 6749 3.2).',
        "`client_credentials` logs an API client in (its id and secret in the body, or by HTTP Basic). `password` logs a user in, and needs the client's access token in the `Authorization` header.",
        '`refresh_token` trades a refresh token for a new pair: each refresh token works once. A token used again within 30 seconds, after a lost answer or by a concurrent request, gives another pair; a later reuse ends the whole login.',
        'After 10 failures in a row for one username from one address, 100 for one username, or 100 of users from one address, within 15 minutes, further attempts of users who have not logged in from there before get 429. After 10 failures for one client from one address, or 100 of clients from one address, so do wrong secrets; a right one never does.',
      ].join('\n\n'),
      caller: 'none',
      formBody: true,
      noStore: true,
      body: { type: 'object', oneOf: [PASSWORD, byBasic(REFRESH), byBasic(CLIENT)] },
      bodyCheckedByHandler: true,
      bodyExample: { grant_type: 'client_credentials', client_id: 'app', client_secret: 'app-secret' },
      answers: [
        jsonAnswer(
          'The tokens.',
          TOKENS,
          { token_type: 'Bearer', expires_in: 900, access_token: 'eyJhbGciOiJIUzI1NiJ9…' },
          { headers: { Pragma: '`no-cache`' } },
        ),
      ],
      errors: ['authentication_failed', 'forbidden', 'too_many_requests', 'unsupported_grant_type', 'schema'],
      async handle(call) {
        return challenged(call.header('authorization'), async () => answer(await tokens(call)));
      },
    },
  ];
}

/** Parameters without a value count as absent (RFC 6749 3.2), in JSON as in forms. */
export function withoutEmpty(body: Call['body']): Call['body'] {
  if (!isObject(body)) return body;
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== ''));
}

/**
 * The body may repeat the client's id of HTTP Basic (RFC 6749 2.3.1).
 * @throws HttpError authentication_failed for two different ids
 */
export function credentialsOf(
  { client_id = '', client_secret = '' }: Fields,
  basic: ClientCredentials | undefined,
): ClientCredentials {
  if (basic === undefined) return { id: client_id, secrets: [client_secret] };
  if (client_id !== '' && client_id !== basic.id) throw authenticationFailed();
  return basic;
}

function answer({ accessToken, expiresIn, refreshToken }: TokenPair): Answer {
  return {
    headers: { Pragma: 'no-cache' },
    body: {
      token_type: 'Bearer',
      expires_in: expiresIn,
      access_token: accessToken,
      refresh_token: refreshToken,
    },
  };
}
