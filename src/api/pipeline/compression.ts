/**
 * Compression of large answers that hold no secret (docs/api/conventions.md#compression). Not koa-compress: it sees
 * only bodies that Koa sends, and JSON passes Koa by (`send.ts`).
 */
import { type Readable, type Transform, pipeline } from 'node:stream';
import { promisify } from 'node:util';
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib';
import type { Context } from 'koa';

export type Coding = 'br' | 'gzip';

/** Bytes from which an answer is compressed: a smaller one fits into a packet or two as it is. */
const LEAST_BYTES = 1_400;
/**
 * Brotli options. Quality 4 is as fast as gzip, with smaller output; Node's default of 11 takes a hundred times as
 * long.
 */
const BROTLI = {
  params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT },
};

const brotliOf = promisify(brotliCompress);
const gzipOf = promisify(gzip);

/** The coding that the caller prefers; sets `Vary` for caches. `undefined`: no coding, also for HEAD. */
export function codingFor(ctx: Context): Coding | undefined {
  ctx.vary('Accept-Encoding');
  if (ctx.method === 'HEAD') return undefined;
  const found = ctx.acceptsEncodings('br', 'gzip', 'identity');
  return found === 'br' || found === 'gzip' ? found : undefined;
}

/** Compresses content on other threads; `undefined`: the content is too small to be worth it. */
export async function compressed(content: string | Buffer, coding: Coding): Promise<Buffer | undefined> {
  if (Buffer.byteLength(content) < LEAST_BYTES) return undefined;
  return coding === 'br' ? brotliOf(content, BROTLI) : gzipOf(content);
}

/**
 * Compressed stream of the content. An error of the content becomes an error of this stream; destroying this stream
 * destroys the content.
 */
export function compressedStream(content: Readable, coding: Coding): Transform {
  const coder = coding === 'br' ? createBrotliCompress(BROTLI) : createGzip();
  return pipeline(content, coder, (error) => {
    if (error) coder.destroy(error);
  });
}
