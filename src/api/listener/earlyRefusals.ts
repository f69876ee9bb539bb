/**
 * Answers to requests that never reach the application, each after the answers to all earlier requests of its
 * connection (RFC 9112 9.3.2).
 */
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { type ErrorCode, ERRORS } from '../../domain/errors.js';
import { after, endTimer, randomUUID, systemMs } from '../../lib/world.js';
import { CODE_HEADER, retryAfterOf } from '../pipeline/errors.js';
import { requestIdOf } from '../pipeline/requestState.js';
import type { Lingering } from './lingering.js';

/** How long a refusal waits for earlier answers, ms: the time limit of a request's arrival. */
const TURN_MS = 60_000;

export interface Refusals {
  /** Whether the application may have this request: not after a refusal that ends its connection. */
  admits(request: IncomingMessage, response: ServerResponse): boolean;
  /** Refuses and ends the connection after the answers to all complete requests; only its first refusal counts. */
  refuse(connection: Duplex, as: ErrorCode): void;
  /** Ends a new connection with 503, because there are too many. */
  turnAway(connection: Duplex): void;
  /**
   * Makes the answer to the latest request the connection's last (`Connection: close` unless the answer has started).
   * Later requests are not admitted.
   */
  end(connection: Duplex): void;
  /** Whether the latest request has arrived completely. */
  isWhole(connection: Duplex): boolean;
  closeAll(): void;
}

/** Latest request of a connection. `before`: the unfinished previous answer. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly before: ServerResponse | undefined;
}

export function refusals(lingering: Lingering): Refusals {
  /**
   * Latest exchange of each connection. Answers are sent in the order of their requests, so the latest is also the
   * last.
   */
  const latest = new WeakMap<Duplex, Exchange>();
  const refused = new Set<Duplex>();
  const ending = new WeakSet<Duplex>();
  return {
    admits(request, response) {
      if (refused.has(request.socket) || ending.has(request.socket)) return false;
      const before = latest.get(request.socket)?.response;
      latest.set(request.socket, {
        request,
        response,
        before: before === undefined || isSent(before) ? undefined : before,
      });
      return true;
    },
    refuse(connection, as) {
      // Bytes on a lingering connection belong to an answered request.
      if (connection.destroyed || refused.has(connection) || lingering.has(connection)) return;
      refused.add(connection);
      const waiting = after(TURN_MS, () => connection.destroy()).unref();
      connection.once('close', () => {
        endTimer(waiting);
        refused.delete(connection);
      });
      const end = (text: string): void => {
        // A connection that is not writable has sent its last answer.
        if (!connection.writable) return;
        endTimer(waiting);
        lingering.end(connection, text);
      };
      const exchange = latest.get(connection);
      const broken = exchange?.request.complete === false ? exchange : undefined;
      onceSent(broken === undefined ? exchange?.response : broken.before, () => {
        if (broken === undefined || !(broken.response.headersSent || broken.request.complete)) end(answerText(as));
        // The request has its own answer, which nothing may interrupt or follow.
        else onceSent(broken.response, () => end(''));
      });
    },
    turnAway(connection) {
      refused.add(connection);
      connection.once('close', () => refused.delete(connection));
      lingering.end(connection, answerText('unavailable'), true);
    },
    end(connection) {
      const response = latest.get(connection)?.response;
      if (response === undefined || isSent(response)) return;
      ending.add(connection);
      if (response.headersSent) onceSent(response, () => connection.end());
      else response.shouldKeepAlive = false;
    },
    isWhole: (connection) => latest.get(connection)?.request.complete !== false,
    closeAll() {
      for (const connection of refused) connection.destroy();
    },
  };
}

/** Whether the answer is written completely, and detached from the connection by Node. */
const isSent = (response: ServerResponse): boolean => response.writableFinished && response.socket === null;

function onceSent(response: ServerResponse | undefined, then: () => void): void {
  if (response === undefined || isSent(response)) then();
  else response.once('finish', then);
}

/**
 * Answers a request that the application does not get. Its connection stays open.
 * @param more headers that depend on the request
 */
export function answerRefused(response: ServerResponse, as: ErrorCode, more: Readonly<Record<string, string>>): void {
  const [status] = ERRORS[as];
  const { headers, body } = refusalOf(as);
  const own = ['X-Request-Id', requestIdOf(response.req), ...Object.entries(more).flat()];
  response.writeHead(status, headers.concat(own)).end(body, 'latin1');
}

function answerText(as: ErrorCode): string {
  const [status] = ERRORS[as];
  const { headers, body } = refusalOf(as);
  // `Date` is required in answers but 1xx and 5xx (RFC 9110 6.6.1); Node sets none here.
  const own = ['X-Request-Id', randomUUID(), 'Date', new Date(systemMs()).toUTCString(), 'Connection', 'close'];
  const all = headers.concat(own);
  const lines = all.map((value, index) => (index % 2 === 0 ? `${value}: ` : `${value}\r\n`));
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`;
}

interface Refusal {
  /** Names and values, one after another. */
  readonly headers: readonly string[];
  readonly body: string;
}

/** Refusals made so far: under overload one has to cost little. */
const made: Partial<Record<ErrorCode, Refusal>> = {};

const refusalOf = (as: ErrorCode): Refusal => (made[as] ??= makeRefusal(as));

function makeRefusal(as: ErrorCode): Refusal {
  const body = JSON.stringify({ error: ERRORS[as][1] });
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(body.length),
    [CODE_HEADER]: as,
    'Content-Security-Policy': "default-src 'none'",
    'Referrer-Policy': 'no-referrer',
    'Strict-Transport-Security': 'max-age=31536000; includeSubDomains',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'SAMEORIGIN',
    ...retryAfterOf(as),
  };
  return { headers: Object.entries(headers).flat(), body };
}
