/** A client of the API: it logs users in, and sends one request at a time to any member. */
import { sleep } from '../../../src/lib/world.js';
import type { Member } from '../service/member.js';
import { NoAnswerError, NoConnectionError, send } from '../service/network.js';
import type { Answer } from '../model/history.js';
import type { Request } from '../model/requests.js';
import type { Chance } from '../world/chance.js';
import { type SimulatedProcess, startProcess } from '../world/simulatedProcess.js';
import type { Simulation } from '../world/simulation.js';
import { noteCall } from './staffCalls.js';

export interface Client {
  readonly process: SimulatedProcess;
  readonly chance: Chance;
  /**
   * Sends a request of a user, or of the API client itself as `client:app`.
   * @returns the answer; `undefined`: none came, or the user could not be logged in
   */
  exchange(user: string, request: Request): Promise<Answer | undefined>;
  /** The same without a token. */
  send(request: Request): Promise<Answer | undefined>;
}

export interface ClientOptions {
  readonly name: string;
  /** Members that serve the API. */
  readonly members: readonly Member[];
}

/** The API client of all users; its secret is `{id}-secret`. */
const CLIENT_ID = 'app';
/** Connections that are tried for a request, to any member, while none is made; and the virtual ms between two. */
const MOST_CONNECTIONS = 6;
const RECONNECT_MS = 1_500;
/** In the place of a user: the API client itself. */
export const CLIENT = `client:${CLIENT_ID}`;

export function openClient(simulation: Simulation, { name, members }: ClientOptions): Client {
  const process = startProcess(simulation, { name });
  const chance = simulation.chance.stream(`client ${name}`);
  const tokens = new Map<string, string>();
  const address = `10.0.0.${1 + chance.integer(200)}`;

  async function sent({ method, path, headers, body }: Request, token?: string): Promise<Answer | undefined> {
    const request = {
      method,
      path,
      headers: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      body: body === undefined ? undefined : JSON.stringify(body),
      address,
    };
    for (let attempts = 1; ; attempts++)
      try {
        const answer = await send(simulation, { from: process, to: chance.pick(members), request });
        return { status: answer.status, headers: answer.headers, body: jsonOf(answer.text) };
      } catch (error) {
        if (!(error instanceof NoAnswerError)) throw error;
        if (!(error instanceof NoConnectionError) || attempts === MOST_CONNECTIONS) return undefined;
        await sleep(RECONNECT_MS);
      }
  }

  async function granted(owner: string, grant: object, token?: string): Promise<string | undefined> {
    const headers = { 'content-type': 'application/json' };
    const answer = await sent({ method: 'POST', path: '/oauth/token', headers, body: grant }, token);
    const given = (answer?.body as { readonly access_token?: string } | undefined)?.access_token;
    if (given === undefined) tokens.delete(CLIENT);
    else tokens.set(owner, given);
    return given;
  }

  async function tokenOf(user: string): Promise<string | undefined> {
    const known = tokens.get(user);
    if (known !== undefined) return known;
    const own =
      tokens.get(CLIENT) ??
      (await granted(CLIENT, {
        grant_type: 'client_credentials',
        client_id: CLIENT_ID,
        client_secret: `${CLIENT_ID}-secret`,
      }));
    if (own === undefined || user === CLIENT) return own;
    const login = { grant_type: 'password', username: `${user}@test.example`, password: `${user}-password` };
    return granted(user, login, own);
  }

  return {
    process,
    chance,
    send: async (request) => sent(request),
    async exchange(user, request) {
      const token = await tokenOf(user);
      if (token === undefined) return undefined;
      const answer = await sent(request, token);
      if (answer !== undefined) noteCall(simulation, user, request, answer);
      // The token has expired, or its session was never stored.
      if (answer?.status === 401) tokens.delete(user);
      return answer;
    },
  };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
