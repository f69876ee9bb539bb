/** Calls of the API over HTTP, as an app makes them: for commands of app developers, also against a hosted sandbox. */
import type { Command } from 'commander';
import { VERSION } from '../../lib/version.js';
import { CommandFailure, orStandardInput, type Terminal, usageFailure } from '../terminal.js';

/**
 * How the API is reached, and the secret of webhooks: each as an option or in the environment, where no other user of
 * the machine reads it.
 */
const ACCESS = {
  url: ['--url <address>', 'GIFT_URL', 'where the API is; default http://127.0.0.1:3000'],
  token: ['--token <token>', 'GIFT_TOKEN', 'an access token, in place of a client'],
  client: ['--client <id>', 'GIFT_CLIENT', "the client's id"],
  clientSecret: ['--client-secret <secret>', 'GIFT_CLIENT_SECRET', "the client's secret"],
  username: ['--username <name>', 'GIFT_USERNAME', 'a customer who logs in with the client, and buys'],
  password: ['--password <password>', 'GIFT_PASSWORD', 'their password'],
  till: ['--till <name>', 'GIFT_TILL', "a merchant's user with the permission unredeem"],
  tillPassword: ['--till-password <password>', 'GIFT_TILL_PASSWORD', 'their password'],
  secret: ['--secret <secret>', 'GIFT_SECRET', 'the secret that signs, whsec_…; default: a new one, which is shown'],
} as const;

type AccessName = keyof typeof ACCESS;
export type Access = Partial<Readonly<Record<AccessName, string>>>;

export function accessOptions(command: Command, names: readonly AccessName[]): Command {
  for (const name of names) {
    const [flags, variable, meaning] = ACCESS[name];
    command.option(flags, `${meaning} (or ${variable}); - reads it from standard input`);
  }
  return command;
}

/** @throws CommandFailure for an address that is none */
export async function accessOf(terminal: Terminal, flags: Access, names: readonly AccessName[]): Promise<Access> {
  const access: Partial<Record<AccessName, string>> = {};
  for (const name of names) {
    const text = flags[name] ?? terminal.env[ACCESS[name][1]];
    if (text !== undefined && text !== '') access[name] = await orStandardInput(terminal, text);
  }
  const url = access.url ?? 'http://127.0.0.1:3000';
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw usageFailure(`--url must be the address of an API, such as https://sandbox.example, not ${url}`);
  return { ...access, url: url.replace(/\/+$/, '') };
}

export type As = 'client' | 'user' | 'till';

export interface ApiAnswer {
  /** 0: there was no answer. */
  readonly status: number;
  readonly headers: Headers;
  /** The body, or a description of why there was no answer as `error`. */
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Api {
  /** @throws CommandFailure where the login is refused, or none was given */
  call(
    method: 'GET' | 'POST' | 'PATCH',
    path: string,
    request: { readonly as: As; readonly body?: object },
  ): Promise<ApiAnswer>;
}

/** Describes an answer that was not expected. */
export const described = ({ status, body }: ApiAnswer): string =>
  status === 0 ? String(body['error']) : `${status} ${typeof body['error'] === 'string' ? body['error'] : ''}`.trim();

/** The name and password of each caller, with the options that give them. */
const LOGINS = {
  client: ['client', 'clientSecret'],
  user: ['username', 'password'],
  till: ['till', 'tillPassword'],
} as const satisfies Record<As, readonly [AccessName, AccessName]>;

/** Logs in when a token is needed, and again once it has ended. */
export function openApi(access: Access, signal: AbortSignal): Api {
  const tokens = new Map<As, string>();

  async function send(method: string, path: string, token: string | undefined, body?: object): Promise<ApiAnswer> {
    const headers: Record<string, string> = { accept: 'application/json', 'user-agent': `gift/${VERSION}` };
    if (token !== undefined) headers['authorization'] = `Bearer ${token}`;
    if (body !== undefined) headers['content-type'] = 'application/json';
    try {
      const content = body === undefined ? {} : { body: JSON.stringify(body) };
      const response = await fetch(`${access.url}${path}`, { method, headers, signal, redirect: 'error', ...content });
      const text = await response.text();
      return { status: response.status, headers: response.headers, body: jsonOf(text) };
    } catch (error) {
      // Of a connection that failed, `fetch` has the reason in the cause.
      const { cause = error } = error as { readonly cause?: unknown };
      return { status: 0, headers: new Headers(), body: { error: reasonOf(cause) } };
    }
  }

  /** @returns a token, or the answer that has none @throws CommandFailure */
  async function tokenFor(as: As): Promise<string | ApiAnswer> {
    const known = access.token ?? tokens.get(as);
    if (known !== undefined) return known;
    const [name, secret] = LOGINS[as];
    const given = { name: access[name], secret: access[secret] };
    if (given.name === undefined || given.secret === undefined)
      throw usageFailure(`give ${optionsOf(name)} and ${optionsOf(secret)}`);
    const by = as === 'client' ? undefined : await tokenFor('client');
    if (typeof by === 'object') return by;
    const login =
      as === 'client'
        ? { grant_type: 'client_credentials', client_id: given.name, client_secret: given.secret }
        : { grant_type: 'password', username: given.name, password: given.secret };
    const answer = await send('POST', '/oauth/token', by, login);
    const token = answer.body['access_token'];
    if (answer.status === 200 && typeof token === 'string') {
      tokens.set(as, token);
      return token;
    }
    if (as !== 'client' && answer.status === 401) tokens.delete('client');
    if (answer.status < 400 || answer.status >= 500 || answer.status === 429) return answer;
    throw new CommandFailure(`${given.name} could not log in at ${access.url}: ${described(answer)}`);
  }

  return {
    async call(method, path, { as, body }) {
      for (let again = access.token === undefined; ; again = false) {
        const token = await tokenFor(as);
        if (typeof token !== 'string') return token;
        const answer = await send(method, path, token, body);
        if (answer.status !== 401 || !again) return answer;
        // A sandbox's clock, or its reset, ends tokens at any time: those of the client, by which users log in, too.
        tokens.clear();
      }
    },
  };
}

const optionsOf = (name: AccessName): string => `${ACCESS[name][0].split(' ')[0]} (or ${ACCESS[name][1]})`;

function jsonOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === 'object' && body !== null) return body as Readonly<Record<string, unknown>>;
  } catch {
    // A proxy's page, for example.
  }
  return { error: 'the answer is no JSON: is this the address of the API?' };
}

function reasonOf(cause: unknown): string {
  if (cause instanceof AggregateError && cause.errors.length > 0) return reasonOf(cause.errors[0]);
  return `no answer: ${cause instanceof Error ? cause.message : String(cause)}`;
}
