/**
 * Answers to requests that never reach the application, each behind the answers to all earlier requests of its
 * connection (RFC 9112 9.3.2).
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Lingering } from './lingering.js';

/** How long earlier answers may take, ms: as long as a request has to arrive. */
const TURN_MS = 60_000;

const ANSWERS = {
  malformed: ['400 Bad Request', 'Malformed request.'],
  not_found: ['404 Not Found', 'Not found.'],
  late: ['408 Request Timeout', 'Request timed out.'],
  too_large: ['413 Content Too Large', 'Request too large.'],
  head_too_large: ['431 Request Header Fields Too Large', 'Request too large.'],
  starting: ['503 Service Unavailable', 'Service unavailable.'],
} as const;

export type RefusedAs = keyof typeof ANSWERS;

export interface Refusals {
  /**
   * Whether the application may have this request: not where its connection ends with an earlier one's refusal, after
   * which nobody could be answered.
   */
  admits(request: IncomingMessage, response: ServerResponse): boolean;
  /**
   * Refuses and ends the connection once all admitted requests that came whole are answered; the first refusal of a
   * connection counts.
   */
  refuse(connection: Duplex, as: RefusedAs): void;
  /**
   * Makes the answer to a connection's latest request its last, and says so in it unless it has started. Later requests
   * are not admitted.
   */
  end(connection: Duplex): void;
  /** Whether the latest request of a connection came whole: the rest of another one may be on its way. */
  isWhole(connection: Duplex): boolean;
  closeAll(): void;
}

/** An admitted request, and the answer to the one before it where that may still be under way. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly before: ServerResponse | undefined;
}

export function refusals(lingering: Lingering): Refusals {
  /** Answers go out in the order of their requests, so that the latest is also the last. */
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
      // What a lingering connection sends belongs to a request that has its answer.
      if (connection.destroyed || refused.has(connection) || lingering.has(connection)) return;
      refused.add(connection);
      const waiting = setTimeout(() => connection.destroy(), TURN_MS).unref();
      connection.once('close', () => {
        clearTimeout(waiting);
        refused.delete(connection);
      });
      const end = (text: string): void => {
        // Not writable: the answer before was to be the connection's last.
        if (!connection.writable) return;
        clearTimeout(waiting);
        lingering.end(connection, text);
      };
      const exchange = latest.get(connection);
      const broken = exchange?.request.complete === false ? exchange : undefined;
      onceSent(broken === undefined ? exchange?.response : broken.before, () => {
        if (broken === undefined || !(broken.response.headersSent || broken.request.complete)) end(answerText(as));
        // It has its own answer: nothing may be written into that, and no second one follows.
        else onceSent(broken.response, () => end(''));
      });
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

/** Whether it was handed over whole, and Node has then ended the connection or given it to the next answer. */
const isSent = (response: ServerResponse): boolean => response.writableFinished && response.socket === null;

function onceSent(response: ServerResponse | undefined, then: () => void): void {
  if (response === undefined || isSent(response)) then();
  else response.once('finish', then);
}

/** With the headers that every answer carries. */
function answerText(as: RefusedAs): string {
  const [status, error] = ANSWERS[as];
  const body = JSON.stringify({ error });
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(body.length),
    // Of every answer but 1xx and 5xx (RFC 9110 6.6.1); Node sets none here.
    Date: new Date().toUTCString(),
    Connection: 'close',
    'X-Request-Id': randomUUID(),
    'Content-Security-Policy': "default-src 'none'",
    'Referrer-Policy': 'no-referrer',
    'Strict-Transport-Security': 'max-age=31536000; includeSubDomains',
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'SAMEORIGIN',
    ...(as === 'starting' ? { 'Retry-After': '1' } : {}),
  };
  return `HTTP/1.1 ${status}\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n${body}`;
}
