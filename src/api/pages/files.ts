/** Pages, scripts and styles that the service sends to browsers. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Context } from 'koa';
import { type Coding, codingFor, compressed } from '../pipeline/compression.js';
import { readOnly } from '../pipeline/readOnly.js';

/** Content policy of pages that load nothing from other servers, and run no script of their own text. */
export const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** A file or text that is sent as it is. */
export interface Served {
  readonly type: string;
  readonly etag: string;
  readonly policy?: string;
  /** One shared buffer: copies for slow readers of a large file would fill the memory. */
  content(this: void): Buffer | Promise<Buffer>;
}

/** Reads the file at once: an update may replace it while the program runs. A failed read is repeated on demand. */
export function readOnce(file: string): () => Promise<Buffer> {
  let reading: Promise<Buffer> | undefined;
  const content = async (): Promise<Buffer> => {
    reading ??= readFile(file);
    try {
      return await reading;
    } catch (error) {
      reading = undefined;
      throw error;
    }
  };
  content().catch(() => undefined);
  return content;
}

export function text(content: string | Buffer, type: string): Served {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  return { type, etag: createHash('sha256').update(content).digest('base64url').slice(0, 22), content: () => bytes };
}

export async function answerFile(ctx: Context, { type, etag, policy, content }: Served): Promise<void> {
  readOnly(ctx, ctx.path);
  ctx.status = 200;
  // The tag is weak, because the plain and the compressed answer have the same.
  ctx.etag = `W/"${etag}"`;
  // Browsers revalidate each time, so that a new release shows at once.
  ctx.set('Cache-Control', 'no-cache');
  if (policy !== undefined) ctx.set('Content-Security-Policy', policy);
  const coding = type.startsWith('image/') ? undefined : codingFor(ctx);
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  const bytes = coding === undefined ? undefined : await compressedOnce(content, coding);
  if (bytes !== undefined) ctx.set('Content-Encoding', coding as string);
  ctx.body = bytes ?? (await content());
  ctx.set('Content-Type', type);
}

const compressedBefore = new WeakMap<Served['content'], Map<Coding, Promise<Buffer | undefined>>>();

async function compressedOnce(content: Served['content'], coding: Coding): Promise<Buffer | undefined> {
  const known = compressedBefore.get(content) ?? new Map<Coding, Promise<Buffer | undefined>>();
  compressedBefore.set(content, known);
  let bytes = known.get(coding);
  if (bytes === undefined) {
    bytes = Promise.resolve(content()).then((plain) => compressed(plain, coding));
    known.set(coding, bytes);
    // A failed read is repeated by the next request.
    bytes.catch(() => known.delete(coding));
  }
  return bytes;
}
