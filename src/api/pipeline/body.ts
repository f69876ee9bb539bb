/** Reads a request's body: its type (415), its size (413), its syntax (400), in this order (decisions 1). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { parse as parseForm } from 'node:querystring';
import { MIMEType, promisify } from 'node:util';
import { brotliDecompress, unzip } from 'node:zlib';
import type { Context } from 'koa';
import { shortened } from '../../lib/quotedText.js';
import { repeatedNames } from '../../import/repeatedNames.js';
import { askForBody } from './askForBody.js';
import { CallerLeftError } from './callerLeft.js';
import { HttpError, faultOf } from './errors.js';
import { refuseMalformedParameters } from './query.js';

/** The most bytes a body may have, before and after decompression. */
const LIMIT_BYTES = 1_048_576;
const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';

type Decompress = (bytes: Buffer, options: { readonly maxOutputLength: number }) => Promise<Buffer>;
const unzipped: Decompress = promisify(unzip);
/** By content coding; `x-gzip` is `gzip` (RFC 9110 8.4.1). `undefined`: as it is. */
const CODINGS: ReadonlyMap<string, Decompress | undefined> = new Map([
  ['', undefined],
  ['identity', undefined],
  ['gzip', unzipped],
  ['x-gzip', unzipped],
  ['deflate', unzipped],
  ['br', promisify(brotliDecompress)],
]);
/** Throws at bytes that are no UTF-8; a byte order mark in front is no part of the text. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** What a route takes. */
export interface BodyRules {
  readonly optional: boolean;
  readonly form: boolean;
}

/**
 * The parsed body; `undefined` where it is optional and absent. It may be any JSON value, with fields of any name
 * (`__proto__` is one of its own): the schema refuses them.
 * @throws HttpError `unsupported_content_type`, `request_too_large`, `malformed_json`, `schema` (a form that is no
 * Unicode text, a name that stands twice in one object); CallerLeftError when it breaks off
 */
export async function readBody({ req, res }: Context, rules: BodyRules): Promise<unknown> {
  if (rules.optional && (!announcesBody(req) || (await isEmpty(req, res)))) return undefined;
  const type = typeOf(req);
  if (type !== JSON_TYPE && !(rules.form && type === FORM_TYPE)) throw new HttpError('unsupported_content_type');
  const decompress = decompressorOf(req);
  const bytes = await receive(req, res);
  let text: string;
  let parsed: unknown;
  try {
    text = utf8.decode(decompress === undefined ? bytes : await decompress(bytes, { maxOutputLength: LIMIT_BYTES }));
    if (type === JSON_TYPE) parsed = JSON.parse(text);
  } catch (error) {
    throw new HttpError(
      (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? 'request_too_large' : 'malformed_json',
    );
  }
  if (type === JSON_TYPE) {
    // Of two values under one name a reader takes the first, another the last (RFC 7493 2.3): neither is done.
    const [repeated] = repeatedNames(text, 1);
    if (repeated !== undefined) throw faultOf(shortened(repeated.place), 'must be given only once');
    return parsed;
  }
  refuseMalformedParameters(text);
  // Forms are flat (RFC 6749 B), and one without fields is one: which of them is missing is for the schema to say.
  return parseForm(text);
}

/**
 * The body's bytes as they came, whatever they hold: what is signed must not be touched. One without a body is empty.
 * @throws HttpError `unsupported_content_type` (compressed), `request_too_large`; CallerLeftError when it breaks off
 */
export async function readBytes({ req, res }: Context): Promise<Buffer> {
  if (decompressorOf(req) !== undefined) throw new HttpError('unsupported_content_type');
  return receive(req, res);
}

/** Whether the request announces a body (RFC 9112 6.3). */
function announcesBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length'];
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0');
}

/**
 * Whether a body without a length turns out to have no bytes. What has come stays to be read. @throws CallerLeftError
 * when it breaks off
 */
async function isEmpty(request: IncomingMessage, response: ServerResponse): Promise<boolean> {
  if (request.headers['content-length'] !== undefined) return false;
  askForBody(request, response);
  return new Promise((resolve, reject) => {
    const look = (): void => {
      const first = request.read() as Buffer | null;
      if (first === null) return;
      request.off('readable', look).off('end', none).off('error', broken);
      request.unshift(first);
      resolve(false);
    };
    const none = (): void => resolve(true);
    const broken = (): void => reject(new CallerLeftError());
    request.on('readable', look).once('end', none).once('error', broken);
  });
}

/**
 * The media type, in lower case. Parameters may be empty, and have tabs around them (RFC 9110 5.6.6).
 * @throws HttpError `unsupported_content_type` for none, one that can't be read, and another charset than UTF-8
 */
function typeOf({ headers }: IncomingMessage): string {
  let media: MIMEType;
  try {
    media = new MIMEType(headers['content-type'] ?? '');
  } catch {
    throw new HttpError('unsupported_content_type');
  }
  const charset = (media.params.get('charset') ?? 'utf-8').toLowerCase();
  if (charset !== 'utf-8' && charset !== 'utf8') throw new HttpError('unsupported_content_type');
  return media.essence;
}

/**
 * What decompresses the body; `undefined`: it is as it is. @throws HttpError `unsupported_content_type` for a coding
 * that is not known
 */
function decompressorOf({ headers }: IncomingMessage): Decompress | undefined {
  // Names of codings have no case (RFC 9110 8.4.1).
  const coding = (headers['content-encoding'] ?? '').toLowerCase();
  if (!CODINGS.has(coding)) throw new HttpError('unsupported_content_type');
  return CODINGS.get(coding);
}

/** All of the bytes that come. @throws HttpError `request_too_large`; CallerLeftError when they break off */
async function receive(request: IncomingMessage, response: ServerResponse): Promise<Buffer> {
  if (Number(request.headers['content-length'] ?? 0) > LIMIT_BYTES) throw new HttpError('request_too_large');
  askForBody(request, response);
  const received: Buffer[] = [];
  let length = 0;
  return new Promise((resolve, reject) => {
    const take = (chunk: Buffer): void => {
      length += chunk.length;
      if (length <= LIMIT_BYTES) return void received.push(chunk);
      // What is left of the body is read and forgotten, else the connection's next request would wait behind it for
      // ever.
      request.off('data', take).resume();
      reject(new HttpError('request_too_large'));
    };
    request.on('data', take);
    request.once('end', () => resolve(Buffer.concat(received)));
    request.once('error', () => reject(new CallerLeftError()));
  });
}
