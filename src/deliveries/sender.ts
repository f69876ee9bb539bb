/** Sends one HTTP request to an address that a stranger chose (docs/design.md#webhook-deliveries). */
import { Agent as HttpAgent, type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { after, endTimer } from '../lib/world.js';
import { type AddressPolicy, AddressRefusedError, checkedAddresses, UnresolvedNameError } from './addresses.js';
import { ADDRESS_WAIT_MS } from '../lib/addressWait.js';

/** Longest time from the name's resolution to the last byte read of the answer. */
const ANSWER_MS = 15_000;
/** Longest time for the body of an answer whose status is known. */
const BODY_MS = 2_000;
/** Bytes read of the answer's body. */
const READ_BYTES = 1_024;
/** A connection without a request is closed after this long: many receivers close theirs after 5 s. */
const IDLE_MS = 4_000;

interface Delivery {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type Outcome = Answered | Unanswered;

interface Answered {
  readonly status: number;
  /** Beginning of the answer's body, as text. */
  readonly response: string;
  /** Text of the `Retry-After` header. */
  readonly retryAfter?: string;
}

interface Unanswered {
  /** Description of the failure for the endpoint's owner. */
  readonly error: string;
  /** There was no connection and no reason given, so the fault may be on our side. */
  readonly unreached?: true;
  /** Nothing listens at the address. */
  readonly refused?: true;
}

interface Connecting {
  connected: boolean;
}

export interface Sender {
  /** Sends one request. It never throws; `signal` ends it without an answer. */
  send(delivery: Delivery, signal: AbortSignal): Promise<Outcome>;
  /** Closes idle connections. */
  close(): void;
}

export interface SenderOptions {
  readonly addresses: AddressPolicy;
  readonly userAgent: string;
  /** Certificates to trust instead of the usual ones. */
  readonly ca?: string;
  readonly answerMs?: number;
}

/** Follows no redirect and uses no proxy. A connection stays open for the receiver's next events. */
export function openSender({ addresses, userAgent, ca, answerMs = ANSWER_MS }: SenderOptions): Sender {
  const agentOptions = {
    keepAlive: true,
    timeout: IDLE_MS,
    scheduling: 'lifo',
    autoSelectFamilyAttemptTimeout: ADDRESS_WAIT_MS,
  } as const;
  const agents = {
    'http:': new HttpAgent(agentOptions),
    'https:': new HttpsAgent({ ...agentOptions, rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) }),
  };

  const lookup: LookupFunction = (name, { all }, found) => {
    checkedAddresses(addresses, name).then(
      (checked) => {
        const list = checked.map((address) => ({ address, family: isIP(address) }));
        const [first] = list;
        if (all === true) found(null, list);
        else if (first !== undefined) found(null, first.address, first.family);
      },
      (error: unknown) => found(error as NodeJS.ErrnoException, []),
    );
  };

  async function attempt(
    { url: text, headers, body }: Delivery,
    signal: AbortSignal,
    connecting: Connecting,
  ): Promise<Outcome> {
    const url = new URL(text);
    const { protocol } = url;
    if (protocol !== 'http:' && protocol !== 'https:')
      throw new AddressRefusedError('its URL is none of http or https');
    // Node calls `lookup` only for names, so an address is checked here.
    if (isIP(url.hostname.replace(/^\[|\]$/g, '')) !== 0) await checkedAddresses(addresses, url.hostname);
    const send = protocol === 'https:' ? httpsRequest : httpRequest;
    const outgoing = send(url, {
      method: 'POST',
      agent: agents[protocol],
      lookup,
      signal,
      headers: {
        ...headers,
        'user-agent': userAgent,
        'content-type': 'application/json; charset=utf-8',
        'content-length': Buffer.byteLength(body),
      },
    });
    outgoing.once('socket', (socket) => {
      connecting.connected = outgoing.reusedSocket;
      if (!outgoing.reusedSocket) socket.once('connect', () => (connecting.connected = true));
    });
    try {
      return await answerTo(outgoing, body);
    } catch (error) {
      // The receiver closed an idle connection while the request was being sent, and has hardly read it.
      if (outgoing.reusedSocket && codeOf(error) === 'ECONNRESET' && !signal.aborted)
        return attempt({ url: text, headers, body }, signal, connecting);
      throw error;
    }
  }

  return {
    async send(delivery, signal) {
      // Not AbortSignal.any: in Node 20 a long-lived signal retains a trace of every signal derived from it.
      const ending = new AbortController();
      const end = (): void => ending.abort();
      let isLate = false;
      const connecting: Connecting = { connected: false };
      const late = after(answerMs, () => {
        isLate = true;
        end();
      });
      signal.addEventListener('abort', end);
      if (signal.aborted) end();
      try {
        return await attempt(delivery, ending.signal, connecting);
      } catch (error) {
        const text = isLate ? `no answer within ${answerMs / 1_000} s` : messageFor(error);
        const unreached = !connecting.connected && (isLate || isUnreached(error));
        if (unreached) return { error: text, unreached };
        return isRefused(error) ? { error: text, refused: true } : { error: text };
      } finally {
        endTimer(late);
        signal.removeEventListener('abort', end);
      }
    },
    close() {
      for (const agent of Object.values(agents)) agent.destroy();
    },
  };
}

async function answerTo(outgoing: ClientRequest, body: string): Promise<Answered> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.on('response', resolve);
    outgoing.on('error', reject);
    // For example after a protocol upgrade, which was not requested.
    outgoing.on('close', () => reject(new Error('closed without an answer')));
    outgoing.end(body);
  });
  const retryAfter = response.headers['retry-after'];
  return {
    status: response.statusCode ?? 0,
    response: await firstBytes(response),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  };
}

/** Reads the beginning of the body. It never fails, since the status is known already. */
async function firstBytes(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  const late = after(BODY_MS, () => response.destroy());
  await new Promise<void>((resolve) => {
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length >= READ_BYTES) response.destroy();
    });
    response.on('error', () => resolve());
    response.on('close', resolve);
  });
  endTimer(late);
  return new TextDecoder().decode(Buffer.concat(chunks).subarray(0, READ_BYTES));
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

const MESSAGES: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was closed without an answer',
  EPIPE: 'the connection was closed without an answer',
  ETIMEDOUT: 'no connection within the time',
  EHOSTUNREACH: 'its address can not be reached',
  ENETUNREACH: 'its address can not be reached',
  ENOTFOUND: 'its name has no address',
  EAI_AGAIN: 'its name can not be resolved',
};

/** Error codes whose cause may be on our side: name servers, the network, and limits on what a process may open. */
const UNREACHED: ReadonlySet<string> = new Set([
  'EAI_AGAIN',
  'EAI_FAIL',
  'ETIMEDOUT',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'ENETDOWN',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
  'EACCES',
  'EPERM',
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
]);

function isUnreached(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isUnreached);
  return error instanceof UnresolvedNameError || UNREACHED.has(codeOf(error) ?? '');
}

/** Whether a connection was refused, at any address of the name, and none was made to the others. */
function isRefused(error: unknown): boolean {
  if (!(error instanceof AggregateError)) return codeOf(error) === 'ECONNREFUSED';
  return error.errors.some(isRefused) && error.errors.every((one) => isRefused(one) || isUnreached(one));
}

/** Describes an error for the endpoint's owner, without naming an address. */
function messageFor(error: unknown): string {
  // Node reports one error for each address where it could connect to none of several.
  if (error instanceof AggregateError) return messageFor(error.errors[0]);
  if (error instanceof AddressRefusedError || error instanceof UnresolvedNameError) return error.message;
  const code = codeOf(error);
  if (code === undefined) return 'the connection was closed without an answer';
  if (MESSAGES[code] !== undefined) return MESSAGES[code];
  if (code.startsWith('HPE_')) return 'its answer is no HTTP';
  if (/CERT|TLS|SSL|SIGNED|UNABLE_TO/.test(code)) return `its certificate does not hold: ${code}`;
  return `the request failed: ${code}`;
}
