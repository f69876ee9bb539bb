/**
 * Compression of large answers that hold no secret (docs/decisions.md#compression). Not koa-compress: it sees only
 * bodies that Koa sends, and JSON passes Koa by (`send.ts`).
 */
import { type Readable, type Transform, pipeline } from 'node:stream';
import { promisify } from 'node:util';
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib';
import type { Context } from 'koa';

export type Coding = 'br' | 'gzip';

/** Smaller answers fit into a packet or two as they are. */
const LEAST_BYTES = 1_400;
/** As fast as gzip, and smaller; Node's default of 11 takes a hundred times as long. */
const BROTLI = {
  params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT },
};

const brotliOf = promisify(brotliCompress);
const gzipOf = promisify(gzip);

/** The coding that the caller prefers, with `Vary` for caches. `undefined`: none, also for HEAD. */
export function codingFor(ctx: Context): Coding | undefined {
  ctx.vary('Accept-Encoding');
  if (ctx.method === 'HEAD') return undefined;
  const found = ctx.acceptsEncodings('br', 'gzip', 'identity');
  return found === 'br' || found === 'gzip' ? found : undefined;
}

/** `undefined`: too small to be worth it. Works on other threads. */
export async function compressed(content: string | Buffer, coding: Coding): Promise<Buffer | undefined> {
  if (Buffer.byteLength(content) < LEAST_BYTES) return undefined;
  return coding === 'br' ? brotliOf(content, BROTLI) : gzipOf(content);
}

/** An error of the content is one of the stream that is returned; who destroys that destroys the content. */
export function compressedStream(content: Readable, coding: Coding): Transform {
  const coder = coding === 'br' ? createBrotliCompress(BROTLI) : createGzip();
  return pipeline(content, coder, (error) => {
    if (error) coder.destroy(error);
  });
}
