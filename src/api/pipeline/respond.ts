import { Readable } from 'node:stream';
import type { Context } from 'koa';
import { CODE_HEADER } from './errors.js';
import { type Coding, codingFor, compressed, compressedStream } from './compression.js';
import type { StoredAnswer } from './idempotency.js';
import { limitHeaders } from './limitHeaders.js';
import { jsonBody } from './json.js';
import { POSITION_HEADER, type PositionGate } from './positions.js';
import type { RequestState } from './requestState.js';
import type { Answer } from './route.js';
import { sendJson, setCommonHeaders } from './send.js';

const REPLAYED = ['Idempotent-Replayed', 'true'] as const;
const NO_STORE = ['Cache-Control', 'no-store'] as const;

/** Sends an answer. `undefined` (not a promise): the answer was sent without a wait. */
export function respond(ctx: Context, positions: PositionGate, answer: Answer): Promise<void> | undefined {
  const { status = 200, body, position } = answer;
  const headers = limitHeaders(ctx.state as RequestState);
  if (answer.headers !== undefined)
    for (const [name, value] of Object.entries(answer.headers)) headers.push(name, value);
  if (position !== undefined) headers.push(POSITION_HEADER, positions.format(position));
  if (answer.replayed === true) headers.push(...REPLAYED);
  if ((ctx.state as RequestState).noStore === true) headers.push(...NO_STORE);
  const coding = (ctx.state as RequestState).compressed === true ? codingFor(ctx) : undefined;
  const content = typeof body === 'string' || body instanceof Readable ? body : jsonBody(body);
  if (typeof content === 'string' && typeof body !== 'string') {
    if (coding !== undefined) return sendCompressed(ctx, status, headers, content, coding);
    sendJson(ctx, status, headers, content);
    return undefined;
  }
  const sent = content instanceof Readable && coding !== undefined ? compressedStream(content, coding) : content;
  if (sent !== content) headers.push('Content-Encoding', coding as string);
  // Koa listens for errors only while it reads. After HEAD, or once the caller has left, an unhandled error would end
  // the process.
  if (sent instanceof Readable) sent.on('error', reportFault(ctx));
  setCommonHeaders(ctx);
  ctx.status = status;
  ctx.type = 'application/json';
  for (let at = 0; at < headers.length; at += 2) ctx.set(headers[at] as string, headers[at + 1] as string);
  ctx.body = sent;
  return undefined;
}

async function sendCompressed(
  ctx: Context,
  status: number,
  headers: readonly string[],
  text: string,
  coding: Coding,
): Promise<void> {
  const bytes = await compressed(text, coding);
  if (bytes === undefined) sendJson(ctx, status, headers, text);
  else sendJson(ctx, status, [...headers, 'Content-Encoding', coding], bytes);
}

export function replay(ctx: Context, positions: PositionGate, stored: StoredAnswer): void {
  // The stored answer may itself be the answer to a repeated request, made again from the log.
  const { [REPLAYED[0]]: _, [POSITION_HEADER]: position, ...headers } = stored.headers;
  const state = ctx.state as RequestState;
  const noStore = state.noStore === true ? NO_STORE : [];
  const code = headers[CODE_HEADER];
  if (code !== undefined) state.errorCode = code;
  // A stored position is left out if a later request with it would be refused.
  const positionHeader =
    position === undefined || positions.stored(position) === undefined ? [] : [POSITION_HEADER, position];
  sendJson(
    ctx,
    stored.status,
    [...Object.entries(headers).flat(), ...positionHeader, ...REPLAYED, ...noStore, ...limitHeaders(state)],
    stored.body ?? '',
  );
}

/** RFC 9110 15.5.6 demands `Allow` in every 405, also for a gift's state. */
export function allowOf(status: number, { allow }: RequestState): Record<string, string> {
  return status === 405 && allow !== undefined ? { Allow: allow } : {};
}

/** Handler of errors after the answer was started or abandoned. */
export function reportFault(ctx: Context): (error: Error) => void {
  return (error) => void ctx.app.emit('error', error, ctx);
}
