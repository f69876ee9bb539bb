/**
 * Logins of the console (docs/console.md#sign-in). The refresh token is in a cookie that scripts can't read; the access
 * token is in the page's memory, and is sent as every other caller sends it.
 */
import { HttpError } from '../pipeline/errors.js';
import type { Answer, Call, Route, Schema } from '../pipeline/route.js';
import { dataSchema, entity, integerSchema, jsonAnswer, listSchema, record, textSchema } from '../pipeline/schemas.js';
import type { StaffLogin, StaffLogins } from '../auth/staffLogins.js';

const COOKIE = 'gift_console';
/**
 * Seconds that the cookie lives without a refresh. The page refreshes while somebody works with it, so a browser that
 * was closed is signed out after this time.
 */
const IDLE_S = 900;

const SESSION: Schema = dataSchema(
  entity('ConsoleSession', {
    access_token: textSchema('For the header `Authorization: Bearer …`.'),
    expires_in: integerSchema('Seconds until the access token expires.'),
    user_id: textSchema(),
    roles: listSchema(textSchema()),
  }),
);

const EXAMPLE = {
  data: { access_token: 'eyJhbGciOiJIUzI1NiJ9…', expires_in: 900, user_id: 'sam-support', roles: ['support'] },
};

interface SessionDeps {
  readonly staff: StaffLogins;
  /** Whether browsers reach the console by https only. */
  readonly secure: boolean;
}

export function consoleSessionRoutes({ staff, secure }: SessionDeps): Route[] {
  const cookie = (value: string, seconds: number): string =>
    `${COOKIE}=${value}; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure ? '; Secure' : ''}`;
  const answer = ({ accessToken, expiresIn, refreshToken = '', user }: StaffLogin): Answer => ({
    headers: { 'Set-Cookie': cookie(refreshToken, IDLE_S) },
    body: { data: { access_token: accessToken, expires_in: expiresIn, user_id: user.id, roles: user.roles } },
  });
  const common = {
    method: 'POST',
    tag: 'Console',
    caller: 'none',
    ofSession: true,
    noStore: true,
    answers: [jsonAnswer('The session.', SESSION, EXAMPLE)],
  } as const;
  return [
    {
      ...common,
      path: '/console/session/start',
      operation: 'startConsoleSession',
      summary: 'Sign in to the console',
      description:
        'Only for users with a role; others are answered as a wrong password is. The cookie that it sets lives 15 minutes without a refresh.',
      body: record(
        {
          username: { type: 'string', minLength: 1, maxLength: 1_024 },
          password: { type: 'string', minLength: 1, maxLength: 1_024 },
        },
        ['username', 'password'],
      ),
      bodyExample: { username: 'sam-support@demo.example', password: '…' },
      errors: ['authentication_failed', 'forbidden', 'no_console_client', 'too_many_requests'],
      async handle(call) {
        refuseOtherSites(call);
        // The cookie is about to be replaced: its session would live on without an owner.
        const before = tokenOf(call);
        if (before !== '') await staff.logout(before);
        const { username, password } = call.body as { readonly username: string; readonly password: string };
        return answer(await staff.login(username, password, call.address));
      },
    },
    {
      ...common,
      path: '/console/session/refresh',
      operation: 'refreshConsoleSession',
      summary: 'Go on with a session of the console',
      description: 'By the cookie, which it replaces. The answer has the next access token.',
      errors: ['authentication_failed', 'forbidden', 'no_console_client', 'too_many_requests'],
      async handle(call) {
        refuseOtherSites(call);
        try {
          return answer(await staff.refresh(tokenOf(call)));
        } catch (error) {
          const hasEnded = error instanceof HttpError && ['authentication_failed', 'forbidden'].includes(error.code);
          if (!hasEnded) throw error;
          // A cookie that opens nothing any more is removed.
          throw new HttpError(error.code, { headers: { ...error.headers, 'Set-Cookie': cookie('', 0) } });
        }
      },
    },
    {
      ...common,
      path: '/console/session/end',
      operation: 'endConsoleSession',
      summary: 'Sign out of the console',
      description: 'Ends the session of the cookie, with its tokens, and removes the cookie.',
      answers: [
        jsonAnswer(
          'The session has ended, if there was one.',
          { type: 'object', additionalProperties: false, properties: {} },
          {},
        ),
      ],
      errors: ['forbidden', 'too_many_requests'],
      async handle(call) {
        refuseOtherSites(call);
        await staff.logout(tokenOf(call));
        return { headers: { 'Set-Cookie': cookie('', 0) }, body: {} };
      },
    },
  ];
}

/**
 * Refuses a call that a page of another site has made, by its name that browsers send (Fetch Metadata). The cookie is
 * not sent from there anyway; this also keeps other sites from signing somebody in.
 */
function refuseOtherSites({ header }: Call): void {
  const site = header('sec-fetch-site');
  if (site !== undefined && site !== 'same-origin' && site !== 'none') throw new HttpError('forbidden');
}

function tokenOf({ header }: Call): string {
  const pairs = (header('cookie') ?? '').split(';').map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${COOKIE}=`))?.slice(COOKIE.length + 1) ?? '';
}
