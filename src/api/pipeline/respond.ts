/** Sends the answer of a handler, or a stored one. */
import { Readable } from 'node:stream';
import type { Context } from 'koa';
import type { StoredAnswer } from './idempotency.js';
import { jsonBody } from './json.js';
import { POSITION_HEADER, type PositionGate } from './positions.js';
import type { RequestState } from './requestState.js';
import type { Answer } from './route.js';
import { sendJson, setCommonHeaders } from './send.js';

const REPLAYED = ['Idempotent-Replayed', 'true'] as const;
const NO_STORE = ['Cache-Control', 'no-store'] as const;

export function respond(ctx: Context, positions: PositionGate, answer: Answer): void {
  const { body, position } = answer;
  const headers: string[] = [];
  if (answer.headers !== undefined)
    for (const [name, value] of Object.entries(answer.headers)) headers.push(name, value);
  if (position !== undefined) headers.push(POSITION_HEADER, positions.format(position));
  if (answer.replayed === true) headers.push(...REPLAYED);
  if ((ctx.state as RequestState).noStore === true) headers.push(...NO_STORE);
  const content = typeof body === 'string' || body instanceof Readable ? body : jsonBody(body);
  if (typeof content === 'string' && typeof body !== 'string') {
    sendJson(ctx, answer.status, headers, content);
    return;
  }
  // Koa listens only while it reads. After HEAD, or once the caller has left, an error that nobody hears would end the
  // process.
  if (content instanceof Readable) content.on('error', reportFault(ctx));
  setCommonHeaders(ctx);
  ctx.status = answer.status;
  ctx.type = 'application/json';
  for (let at = 0; at < headers.length; at += 2) ctx.set(headers[at] as string, headers[at + 1] as string);
  ctx.body = content;
}

export function replay(ctx: Context, positions: PositionGate, stored: StoredAnswer): void {
  // It may itself be a repeated answer, made again from the log.
  const { [REPLAYED[0]]: _, [POSITION_HEADER]: position, ...headers } = stored.headers;
  const noStore = (ctx.state as RequestState).noStore === true ? NO_STORE : [];
  // A position that would be refused when the caller sends it back is left out.
  const place = position === undefined || positions.stored(position) === undefined ? [] : [POSITION_HEADER, position];
  sendJson(
    ctx,
    stored.status,
    [...Object.entries(headers).flat(), ...place, ...REPLAYED, ...noStore],
    stored.body ?? '',
  );
}

/** `Allow` of a 405: every method of the path (RFC 9110 15.5.6), also where a gift's state refused. */
export function allowOf(status: number, { allow }: RequestState): Record<string, string> {
  return status === 405 && allow !== undefined ? { Allow: allow } : {};
}

/** Reports the error of an answer that is being sent, or was given up. */
export function reportFault(ctx: Context): (error: Error) => void {
  return (error) => void ctx.app.emit('error', error, ctx);
}
