/** `Expect: 100-continue`: a caller that waits to be asked for its body (RFC 9110 10.1.1). */
import type { IncomingMessage, ServerResponse } from 'node:http';

/** As Node tells such a request from others: then it leaves the asking to the listener. */
const EXPECTED = /(?:^|\W)100-continue(?:$|\W)/i;

/**
 * Asks for the body with `100 Continue` where the caller waits for that: called by whoever is about to read it, so that
 * a request that is refused before gets the final answer alone. Asked once, and only in HTTP/1.1.
 */
export function askForBody(request: IncomingMessage, response: ServerResponse): void {
  if (asked.has(request) || request.httpVersion !== '1.1' || !EXPECTED.test(request.headers.expect ?? '')) return;
  asked.add(request);
  response.writeContinue();
}

const asked = new WeakSet<IncomingMessage>();
