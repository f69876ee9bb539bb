/** Handling of `Expect: 100-continue` (RFC 9110 10.1.1). */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Pattern of a header that expects `100 Continue`, the same as Node's own for `checkContinue`. */
const EXPECTED = /(?:^|\W)100-continue(?:$|\W)/i;

/**
 * Sends `100 Continue` to a waiting client, once and only in HTTP/1.1. Called just before the body is read, so that an
 * early refusal is the only answer.
 */
export function askForBody(request: IncomingMessage, response: ServerResponse): void {
  if (continued.has(request) || request.httpVersion !== '1.1' || !EXPECTED.test(request.headers.expect ?? '')) return;
  continued.add(request);
  response.writeContinue();
}

const continued = new WeakSet<IncomingMessage>();

/** Whether the request's headers announce a body (RFC 9112 6.3). */
export const announcesBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
