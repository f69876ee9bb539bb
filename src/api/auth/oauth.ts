/** `POST /oauth/token` (spec 5, decisions 2). */
import { HttpError } from '../errors.js';
import type { Answer, Call, Route, Schema } from '../route.js';
import { bodyValidator } from '../validation.js';
import { authenticationFailed, readBasic } from './clients.js';
import type { Grants } from './grants.js';
import type { TokenPair } from './sessions.js';

/** Longer names and secrets are nobody's. */
const text = (description: string): Schema => ({ type: 'string', maxLength: 1_024, description });
const grant = (name: string, properties: Readonly<Record<string, Schema>>, { title = name, required = Object.keys(properties) }: { readonly title?: string; readonly required?: readonly string[] } = {}): Schema => ({
  type: 'object',
  title,
  properties: { grant_type: { type: 'string', const: name }, ...properties },
  required: ['grant_type', ...required],
  additionalProperties: false,
});

const CLIENT_ID = text('The id of the API client.');
const CLIENT_SECRET = text('The secret of the API client.');
const PASSWORD = grant('password', { username: text('The account\'s username, in any case.'), password: text('The account\'s password.') });
const REFRESH = grant('refresh_token', { refresh_token: text('The latest refresh token of the login.'), client_id: CLIENT_ID, client_secret: CLIENT_SECRET });
const CLIENT = grant('client_credentials', { client_id: CLIENT_ID, client_secret: CLIENT_SECRET });
const CLIENT_BASIC = grant('client_credentials', { client_id: CLIENT_ID, client_secret: CLIENT_SECRET }, { title: 'client_credentials with HTTP Basic', required: [] });
/** Every body, whatever its grant: what else is wrong is told by the grant it names, after the token that grant needs. */
const ANY: Schema = { type: 'object', properties: { grant_type: { type: 'string' } }, required: ['grant_type'] };

const TOKENS: Schema = {
  type: 'object',
  properties: {
    token_type: { type: 'string', const: 'Bearer' },
    expires_in: { type: 'integer', description: 'Seconds until the access token expires.' },
    access_token: { type: 'string', description: 'For the header `Authorization: Bearer …`.' },
    refresh_token: { type: 'string', description: 'Good for one refresh. Only with a user\'s login: a client without a user logs in again.' },
  },
  required: ['token_type', 'expires_in', 'access_token'],
  additionalProperties: false,
};

type Fields = Readonly<Record<string, string>>;

/** The token endpoint. */
export function oauthRoutes(grants: Grants): Route[] {
  const check = { any: bodyValidator(ANY), password: bodyValidator(PASSWORD), refresh: bodyValidator(REFRESH), client: bodyValidator(CLIENT), clientBasic: bodyValidator(CLIENT_BASIC) };

  const tokens = async ({ body, address, header }: Pick<Call, 'body' | 'address' | 'header'>): Promise<TokenPair> => {
    check.any(body);
    switch (body['grant_type']) {
      case 'password': {
        const client = await grants.loginClient(header('authorization'));
        await grants.checkAddress(address);
        check.password(body);
        const { username = '', password = '' } = body as Fields;
        return grants.password(client, username, password, address);
      }
      case 'refresh_token': {
        await grants.checkAddress(address);
        check.refresh(body);
        const { refresh_token = '', client_id = '', client_secret = '' } = body as Fields;
        return grants.refresh({ id: client_id, secrets: [client_secret] }, refresh_token, address);
      }
      case 'client_credentials': {
        const basic = readBasic(header('authorization'));
        await grants.checkAddress(address);
        check[basic === undefined ? 'client' : 'clientBasic'](body);
        const { client_id = '', client_secret = '' } = body as Fields;
        if (basic !== undefined && client_id !== '' && client_id !== basic.id) throw authenticationFailed();
        return grants.clientCredentials(basic ?? { id: client_id, secrets: [client_secret] }, address);
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
        '`client_credentials` logs an API client in (its id and secret in the body, or by HTTP Basic). `password` logs a user in, and needs the client\'s access token in the `Authorization` header.',
        '`refresh_token` trades a refresh token for a new pair: each refresh token works once. One that comes back within 30 seconds, because its answer was lost or two were sent at once, gives another pair beside the first; later it ends the whole login.',
        'After 10 failures in a row for one username from one address, 100 for one username, or 100 from one address, within 15 minutes, further attempts get 429.',
      ].join('\n\n'),
      caller: 'none',
      formBody: true,
      noStore: true,
      body: { type: 'object', anyOf: [PASSWORD, REFRESH, CLIENT, CLIENT_BASIC] },
      bodyCheckedByHandler: true,
      bodyExample: { grant_type: 'client_credentials', client_id: 'app', client_secret: 'app-secret' },
      answers: [
        {
          status: 200,
          description: 'The tokens.',
          schema: TOKENS,
          example: { token_type: 'Bearer', expires_in: 900, access_token: 'eyJhbGciOiJIUzI1NiJ9…' },
          headers: { Pragma: '`no-cache`' },
        },
      ],
      errors: ['authentication_failed', 'forbidden', 'too_many_requests', 'unsupported_grant_type', 'schema'],
      async handle(call) {
        return answer(await tokens(call));
      },
    },
  ];
}

function answer({ accessToken, expiresIn, refreshToken }: TokenPair): Answer {
  return {
    status: 200,
    headers: { Pragma: 'no-cache' },
    body: { token_type: 'Bearer', expires_in: expiresIn, access_token: accessToken, ...(refreshToken === undefined ? {} : { refresh_token: refreshToken }) },
  };
}
