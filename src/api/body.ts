/** Reads a request's body: its type (415), its size (413), its syntax (400), in this order (decisions 1). */
import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { parse as parseForm } from 'node:querystring';
import parser from 'koa-bodyparser';
import type { Context } from 'koa';
import { CallerLeftError } from './callerLeft.js';
import { HttpError } from './errors.js';

/** The most bytes a body may have, after decompression. */
const LIMIT = '1mb';
const LIMIT_BYTES = 1_048_576;
const FORM = 'application/x-www-form-urlencoded';

const options: parser.Options = {
  jsonLimit: LIMIT,
  formLimit: LIMIT,
  strict: false,
  onerror(error) {
    const { status, type } = error as Error & { status?: number; type?: string };
    if (status === 413 || type === 'entity.too.large') throw new HttpError('request_too_large');
    if (status === 415) throw new HttpError('unsupported_content_type');
    throw new HttpError('malformed_json');
  },
};
const json = parser({ ...options, enableTypes: ['json'] });
/** Forms are flat (RFC 6749 B): the parser's own reading of brackets as objects takes a second for a long text of them, during which nobody is answered. */
const flat = { qs: { parse: (text: string) => parseForm(text) } };
const jsonOrForm = parser({ ...options, ...flat, enableTypes: ['json', 'form'] });
const nothing = async (): Promise<void> => undefined;

/** What a route takes. */
export interface BodyRules {
  readonly optional: boolean;
  readonly form: boolean;
}

/** Whether the request announces a body (RFC 9112 6.3). */
function announcesBody(ctx: Context): boolean {
  const length = ctx.request.headers['content-length'];
  return ctx.request.headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/** Whether a body without a length turns out to have no bytes. What has come stays to be read. @throws HttpError `malformed_json` when it breaks off */
async function isEmpty(request: IncomingMessage): Promise<boolean> {
  if (request.headers['content-length'] !== undefined) return false;
  return new Promise((resolve, reject) => {
    const look = (): void => {
      const first = request.read() as Buffer | null;
      if (first === null) return;
      request.off('readable', look).off('end', none).off('error', broken);
      request.unshift(first);
      resolve(false);
    };
    const none = (): void => resolve(true);
    const broken = (): void => reject(new HttpError('malformed_json'));
    request.on('readable', look).once('end', none).once('error', broken);
  });
}

/**
 * Rejects once more bytes have come than a body may have, before they are decompressed: one of nothing but empty blocks never has any afterwards, and goes on for ever.
 * Otherwise it stays as it is. @throws HttpError `request_too_large`
 */
async function tooMuch(request: IncomingMessage): Promise<never> {
  return new Promise((_, reject) => {
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > LIMIT_BYTES) reject(new HttpError('request_too_large'));
    });
  });
}

/** Names of codings have no case, and `x-gzip` is `gzip` (RFC 9110 8.4.1): what decodes them knows the plain names only. */
function normaliseCoding(ctx: Context): void {
  const coding = ctx.req.headers['content-encoding']?.toLowerCase();
  if (coding !== undefined) ctx.req.headers['content-encoding'] = coding === 'x-gzip' ? 'gzip' : coding;
}

/**
 * The parsed body; `undefined` where it is optional and absent. It may be any JSON value.
 * @throws HttpError `unsupported_content_type`, `request_too_large`, `malformed_json`
 */
export async function readBody(ctx: Context, rules: BodyRules): Promise<unknown> {
  if (rules.optional && (!announcesBody(ctx) || (await isEmpty(ctx.req)))) return undefined;
  normaliseCoding(ctx);
  const taken = rules.form ? ['application/json', FORM] : ['application/json'];
  const charset = ctx.request.charset.toLowerCase();
  if (announcesBody(ctx) ? typeof ctx.request.is(taken) !== 'string' : !taken.includes(ctx.request.type.toLowerCase())) throw new HttpError('unsupported_content_type');
  if (charset !== '' && charset !== 'utf-8' && charset !== 'utf8') throw new HttpError('unsupported_content_type');
  if (Number(ctx.request.headers['content-length'] ?? 0) > LIMIT_BYTES) throw new HttpError('request_too_large');
  const received: Buffer[] = [];
  const keep = (chunk: Buffer): void => void received.push(chunk);
  ctx.req.on('data', keep);
  try {
    const parsed = (rules.form ? jsonOrForm : json)(ctx, nothing);
    await (isCompressed(ctx) ? Promise.race([parsed, tooMuch(ctx.req)]) : parsed);
  } catch (error) {
    // What is left of the body is read and forgotten, else the connection's next request would wait behind it for ever.
    ctx.req.unpipe();
    ctx.req.resume();
    throw error;
  } finally {
    ctx.req.off('data', keep);
  }
  const { body, rawBody } = ctx.request as { body: unknown; rawBody?: string };
  if (rawBody === undefined || rawBody === '') {
    // A form without fields: which of them is missing is for the schema to say.
    if (ctx.request.type.toLowerCase() === FORM) return {};
    throw new HttpError('malformed_json');
  }
  // Decoding puts U+FFFD in the place of bytes that are no UTF-8. A compressed body's own bytes are gone by now: one with this character is refused.
  if (rawBody.includes('\uFFFD') && (isCompressed(ctx) || !isUtf8(Buffer.concat(received)))) throw new HttpError('malformed_json');
  return body;
}

/**
 * The body's bytes as they came, whatever they hold: what is signed must not be touched. One without a body is empty.
 * @throws HttpError `unsupported_content_type` (compressed), `request_too_large`; CallerLeftError when it breaks off
 */
export async function readBytes(ctx: Context): Promise<Buffer> {
  const received: Buffer[] = [];
  let length = 0;
  const refuse = (code: 'request_too_large' | 'unsupported_content_type'): never => {
    // What is left of the body is read and forgotten, else the connection's next request would wait behind it for ever.
    ctx.req.resume();
    throw new HttpError(code);
  };
  normaliseCoding(ctx);
  if (isCompressed(ctx)) refuse('unsupported_content_type');
  if (Number(ctx.request.headers['content-length'] ?? 0) > LIMIT_BYTES) refuse('request_too_large');
  await new Promise<void>((resolve, reject) => {
    const take = (chunk: Buffer): void => {
      length += chunk.length;
      if (length <= LIMIT_BYTES) return void received.push(chunk);
      ctx.req.off('data', take);
      ctx.req.resume();
      reject(new HttpError('request_too_large'));
    };
    ctx.req.on('data', take);
    ctx.req.once('end', resolve);
    ctx.req.once('error', () => reject(new CallerLeftError()));
  });
  return Buffer.concat(received);
}

function isCompressed(ctx: Context): boolean {
  return (ctx.get('content-encoding') || 'identity') !== 'identity';
}
