/**
 * The session of whoever works with the console (docs/console.md#sign-in). The access token is in memory only; the
 * refresh token is in a cookie that this script can't read. Tabs tell each other of work and of the sign-out.
 */
import { signal } from '@preact/signals';
import { forgetDrafts } from './drafts.js';

export type Role = 'support' | 'auditor';

export type Session =
  | { readonly state: 'unknown' }
  | { readonly state: 'out'; readonly why: string }
  | { readonly state: 'in'; readonly user: string; readonly roles: readonly Role[] };

export const session = signal<Session>({ state: 'unknown' });

/** Milliseconds without any input after which the user is signed out. */
const IDLE_MS = 15 * 60_000;
/** How often a page in use asks for the next token, ms: the cookie lives 15 minutes without that. */
const REFRESH_MS = 5 * 60_000;
const TICK_MS = 10_000;

export const ENDED = 'Your session has ended. Sign in to go on: what you typed is still here.';
export const NO_CONNECTION = 'The service can’t be reached. What you typed is still here: try again.';
const IDLE = 'You were signed out after 15 minutes without input. What you typed is still here.';

const tabs = new BroadcastChannel('gift-console');
let accessToken: string | undefined;
let refreshing: Promise<boolean> | undefined;
let refreshedAt = 0;
let activeAt = Date.now();
/** When this tab told the others of input last. */
let toldAt = 0;
let lastUser: string | undefined;
/** Whether the service is still to be told of a sign-out. */
let isEnding = false;
/** The call that tells the service so. */
let telling: AbortController | undefined;

export const tokenInUse = (): string | undefined => accessToken;

interface SessionAnswer {
  readonly data: { readonly access_token: string; readonly user_id: string; readonly roles: readonly Role[] };
}

const post = async (path: string, body: object, signal?: AbortSignal): Promise<Response> =>
  fetch(`console/session${path}`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });

/** @throws Error which says what is wrong, to show */
async function begin(response: Response): Promise<void> {
  const { data } = await response.json().then(
    (answer) => answer as SessionAnswer,
    // The answer was broken off, or a network that wants a sign-in of its own made it.
    () => Promise.reject(new Error(NO_CONNECTION)),
  );
  accessToken = data.access_token;
  refreshedAt = Date.now();
  // Nothing of an earlier user must be left on the screen.
  if (lastUser !== undefined && lastUser !== data.user_id) return beginAnew();
  lastUser = data.user_id;
  session.value = { state: 'in', user: data.user_id, roles: data.roles };
}

/** Leaves nothing of the user on the screen. */
function beginAnew(): void {
  forgetDrafts();
  location.reload();
}

/** @returns what is wrong, to show; `undefined`: the user is signed in */
export async function signIn(username: string, password: string): Promise<string | undefined> {
  const wasEnding = isEnding;
  leaveEnd();
  const response = await post('/start', { username, password }).catch(() => undefined);
  isEnding = wasEnding && response?.ok !== true;
  if (response === undefined) return NO_CONNECTION;
  if (response.ok) {
    activeAt = Date.now();
    tabs.postMessage({ in: true });
    return begin(response).then(
      () => undefined,
      ({ message }: Error) => message,
    );
  }
  if (response.status === 401)
    return 'Username or password is wrong, or the account has no role for the console (support, auditor).';
  if (response.status === 429) return 'Too many attempts. Wait some minutes, then try again.';
  return messageOf(response);
}

async function messageOf(response: Response): Promise<string> {
  const { error } = (await response.json().catch(() => ({}))) as { readonly error?: string };
  return error ?? `The service answered ${response.status}. Try again.`;
}

/** The next access token; `false`: the session has ended. @throws Error which says why there is neither, to show */
export async function refresh(): Promise<boolean> {
  refreshing ??= (async () => {
    try {
      const response = await post('/refresh', {}).catch(() => undefined);
      if (response === undefined || response.status >= 500) throw new Error(NO_CONNECTION);
      if (response.ok) await begin(response);
      else if (response.status === 401 || response.status === 403)
        forget(session.value.state === 'unknown' ? '' : ENDED);
      else throw new Error(await messageOf(response));
      return response.ok;
    } finally {
      refreshing = undefined;
    }
  })();
  return refreshing;
}

function forget(why: string): void {
  accessToken = undefined;
  if (session.value.state !== 'out') session.value = { state: 'out', why };
}

/**
 * Ends the session, here and in all tabs, and leaves nothing on the screen.
 * @returns what is wrong, to show; `undefined`: the session has ended
 */
export async function signOut(): Promise<string | undefined> {
  const response = await post('/end', {}).catch(() => undefined);
  if (response?.ok !== true) return 'You are still signed in: the service could not be reached. Try again.';
  tabs.postMessage({ out: '' });
  beginAnew();
  return undefined;
}

/** Ends the session of somebody who has left. The service is told as soon as it can be. */
async function endIdle(): Promise<void> {
  forget(IDLE);
  tabs.postMessage({ out: IDLE });
  isEnding = true;
  await tellEnd();
}

async function tellEnd(): Promise<void> {
  telling?.abort();
  const { signal } = (telling = new AbortController());
  const response = await post('/end', {}, signal).catch(() => undefined);
  if (response?.ok === true && !signal.aborted) isEnding = false;
}

/**
 * A sign-in ends the former session by itself. An answer to its end that comes later would take the new cookie away.
 */
function leaveEnd(): void {
  isEnding = false;
  telling?.abort();
}

/** Begins the session that an earlier page or another tab has left, and watches for input and its absence. */
export async function startSession(): Promise<void> {
  for (const event of ['pointerdown', 'keydown', 'wheel'] as const)
    addEventListener(event, noteActivity, { passive: true });
  tabs.onmessage = ({ data }: MessageEvent<{ readonly out?: string; readonly in?: true }>) => {
    // The sign-in has ended the former session: what would be ended now is the new one, of all tabs.
    if (data.in === true) leaveEnd();
    if (data.out === undefined) activeAt = Date.now();
    else if (data.out === '') beginAnew();
    else forget(data.out);
  };
  setInterval(() => void watch(), TICK_MS);
  await refresh().catch(({ message }: Error) => forget(message));
}

function noteActivity(): void {
  const now = Date.now();
  // Timers stand still while a computer sleeps: the first input afterwards may come before the next tick.
  if (session.value.state === 'in' && now - activeAt >= IDLE_MS) return void endIdle();
  if (now - toldAt > TICK_MS) {
    tabs.postMessage({});
    toldAt = now;
  }
  activeAt = now;
}

async function watch(): Promise<void> {
  if (isEnding) await tellEnd();
  if (session.value.state !== 'in') return;
  const now = Date.now();
  if (now - activeAt >= IDLE_MS) await endIdle();
  // A service that is away for a moment is asked again at the next tick.
  else if (now - refreshedAt >= REFRESH_MS) await refresh().catch(() => undefined);
}
